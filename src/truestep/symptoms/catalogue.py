"""The symptoms of ``symptoms.toml``, and the failures that cause them."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from truestep.postmortem.catalogue import POST_MORTEMS
from truestep.rules import all_rules
from truestep.rules._page import parse


@dataclass(frozen=True, slots=True)
class Symptom:
    """One observation, and the failures that cause it.

    Attributes:
        title: the observation: a sentence without a full stop.
        first: the first thing to look at: one or two sentences.
        words: other ways of saying it, in lower case, and messages of torch; each with the cause that it points to,
            or "".
        causes: ids of rules and slugs of post-mortems, the most frequent ones first.
        commands: commands that decide between the causes.
    """

    title: str
    first: str
    words: tuple[tuple[str, str], ...]
    causes: tuple[str, ...]
    commands: tuple[str, ...]


def _read() -> tuple[Symptom, ...]:
    listed = tomllib.loads((Path(__file__).parent / "symptoms.toml").read_text(encoding="utf-8"))["symptom"]
    named = {cause for entry in listed for cause in entry["causes"].split()}
    others = [id for id in all_rules() if id not in named]
    return tuple(
        Symptom(
            entry["title"],
            " ".join(entry["first"].split()),
            tuple(_wording(line) for line in entry["words"].splitlines()),
            tuple(entry["causes"].split() or others),
            tuple(entry["commands"]),
        )
        for entry in listed
    )


def _wording(line: str) -> tuple[str, str]:
    said, _, cause = line.partition("->")
    return said.strip(), cause.strip()


SYMPTOMS = _read()
"""All symptoms, in the order in which a training is debugged. Each rule and each kind of post-mortem is a cause of one
or more."""


def sentence(id: str) -> str:
    """Return one sentence about a cause.

    Args:
        id: id of a rule, or slug of a post-mortem.

    >>> sentence("nan-or-inf")
    'Training continues with a loss that is NaN or infinite.'
    """
    if id in POST_MORTEMS:
        return f"The script crashes: {POST_MORTEMS[id].error}."
    return parse(all_rules()[id].__doc__ or "").title
