"""The observations of TrueStep in the checkpoints of a run: the file `supervision.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from truestep.accounts._account import place
from truestep.export.card import Supervision
from truestep.loop.checkpoint.checkpoint import Checkpoint
from truestep.supervision.session import Session, current

FILE = "supervision.json"


class Observed:
    """The observations of the processes that have trained the weights of a run.

    Attributes:
        earlier: of the processes before a resume, oldest first.
    """

    def __init__(self) -> None:
        self.earlier: tuple[Supervision, ...] = ()
        self._own: Supervision | None = None

    def so_far(self) -> tuple[Supervision, ...]:
        """Return the observations until now, of this process last; a session that has ended counts until its end."""
        session = current()
        if session is not None:
            self._own = _read(session) or self._own
        return self.earlier if self._own is None else (*self.earlier, self._own)

    def documents(self) -> dict[str, str]:
        """Return the text of the file for a checkpoint, by name; {} for a training without supervision."""
        found = self.so_far()
        if not found:
            return {}
        return {FILE: json.dumps({"processes": [asdict(one) for one in found]}, indent=1) + "\n"}


def observed_in(checkpoint: Checkpoint) -> tuple[Supervision, ...]:
    """Return the observations in a checkpoint; () if its training was not supervised."""
    if FILE not in checkpoint.manifest.files:
        return ()
    held = json.loads(checkpoint.file(FILE).read_text(encoding="utf-8"))
    return tuple(map(_parsed, held["processes"]))


def _parsed(held: Mapping[str, Any]) -> Supervision:
    return Supervision(**{**held, "findings": tuple((rule, text, at) for rule, text, at in held["findings"])})


def _read(session: Session) -> Supervision | None:
    """Return the observations of a session so far; None after an error inside TrueStep, which its report has."""
    read: list[Supervision] = []
    with session.harmless():
        found = tuple((each.rule, each.message, place(each.primary.site)) for each in session.findings)
        read.append(Supervision(session.steps, found, session.ledger_so_far(), session.ranks, session.limit))
    return read[0] if read else None
