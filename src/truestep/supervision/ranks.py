"""One report for a run of several processes: each rank leaves its summary, rank 0 gathers and merges them.

The processes meet in a folder, not over the network: the program's own process group may be gone, or stuck, when a
report is due.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truestep.errors import BadRecord
from truestep.findings import Confidence, Coverage, Finding, Outcome, Seen, Severity, Summary, Verdict
from truestep.rules import all_rules
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.root_causes import rooted

PATIENCE_S = {"crashed": 2.0, "interrupted": 5.0}
"""How long rank 0 waits for the others, by how it ended itself: after a crash they may be stuck until it is gone."""
LONGEST_S = 20.0
_SILENT_S = 2.0
"""How long for a rank of which there is no sign in the folder: it may run on another machine."""
_ENDS = ("finished", "exited", "stopped", "interrupted", "crashed")


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among those of its run, as torchrun says it in the environment."""

    rank: int
    world_size: int
    folder: Path
    """Where the ranks meet; made for that alone."""

    @classmethod
    def here(cls, environment: Mapping[str, str], record: Path | None = None) -> Ranks | None:
        """Return the place of this process, or None when it runs alone.

        Args:
            environment: ``RANK``, ``WORLD_SIZE`` and what else torchrun sets.
            record: a folder that all ranks share, if the user named one.
        """
        rank, world_size = _number(environment, "RANK", -1), _number(environment, "WORLD_SIZE", 1)
        if world_size < 2 or not 0 <= rank < world_size:
            return None
        if record is not None:
            return cls(rank, world_size, record / "exchange")
        run = [environment.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT")]
        # Run ids repeat ("none" is the default): the launcher's process number and the attempt do not.
        run += [environment.get("TORCHELASTIC_RESTART_COUNT", "0"), str(os.getppid()), str(os.getuid())]
        name = re.sub(r"[^A-Za-z0-9]+", "_", "-".join(run))
        return cls(rank, world_size, Path(tempfile.gettempdir(), f"truestep-ranks-{name}"))

    def enter(self) -> None:
        """Say that this rank is alive, and take away what an earlier run left under its number.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._summary(self.rank).unlink(missing_ok=True)
        _write(self._presence(self.rank), {"process": os.getpid(), "host": socket.gethostname()})

    def leave(self, summary: Summary) -> None:
        """Leave this rank's summary for rank 0, unless rank 0 has given up and taken the folder away."""
        with contextlib.suppress(FileNotFoundError):
            _write(self._summary(self.rank), to_dict(summary))

    def gather(self, own: Summary, *, patience_s: float | None = None) -> Summary:
        """Wait for the other ranks' summaries and merge them with rank 0's own; name those that did not come.

        The wait is short for a rank whose process is gone: its summary is there by then, or never.
        """
        found, awaited = {self.rank: own}, set(range(self.world_size)) - {self.rank}
        patience_s = PATIENCE_S.get(own.how, LONGEST_S) if patience_s is None else patience_s
        began = time.monotonic()
        while True:
            waited = time.monotonic() - began
            gone = {rank for rank in awaited if self._gone(rank, waited)}
            for rank in sorted(awaited):
                summary = self._read(rank)
                if summary is not None:
                    found[rank] = summary
            awaited -= found.keys() | gone
            if not awaited or waited >= patience_s:
                break
            time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
        return merge(found, self.world_size)

    def _summary(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.json"

    def _presence(self, rank: int) -> Path:
        return self.folder / f"rank-{rank}.process.json"

    def _read(self, rank: int) -> Summary | None:
        try:
            return from_dict(json.loads(self._summary(rank).read_text(encoding="utf-8")))
        except (OSError, ValueError, BadRecord):
            return None

    def _gone(self, rank: int, waited: float) -> bool:
        try:
            if not self._presence(rank).exists():
                return waited > _SILENT_S
            present = json.loads(self._presence(rank).read_text(encoding="utf-8"))
            if present["host"] != socket.gethostname():
                return False
            os.kill(int(present["process"]), 0)
        except ProcessLookupError:
            return True
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return False


def merge(summaries: Mapping[int, Summary], world_size: int) -> Summary:
    """Make one summary of those of several ranks, by rank number."""
    order = sorted(summaries)
    parts = [summaries[rank] for rank in order]
    first = parts[0]
    return replace(
        first,
        how=max((part.how for part in parts), key=lambda how: _ENDS.index(how) if how in _ENDS else len(_ENDS)),
        steps=max(part.steps for part in parts),
        findings=_findings(summaries, world_size),
        verdicts=_verdicts(parts),
        internal_errors=tuple(f"rank {rank}: {error}" for rank in order for error in summaries[rank].internal_errors),
        ranks=world_size,
        missing_ranks=tuple(rank for rank in range(world_size) if rank not in summaries),
        post_mortem=next((part.post_mortem for part in parts if part.post_mortem is not None), None),
        coverage=_coverage([part.coverage for part in parts]),
    )


def _coverage(parts: list[Coverage]) -> Coverage:
    return Coverage(
        called=any(part.called for part in parts),
        backward=any(part.backward for part in parts),
        error=next((part.error for part in parts if part.error), ""),
        processes=sum(part.processes for part in parts),
        started=next((part.started for part in parts if part.started is not None), None),
        chance=parts[0].chance if all(part.chance is not None for part in parts) else None,
    )


def _findings(summaries: Mapping[int, Summary], world_size: int) -> tuple[Finding, ...]:
    seen_by: dict[object, list[tuple[int, Finding]]] = {}
    for rank in sorted(summaries):
        times: Counter[object] = Counter()
        for finding in summaries[rank].findings:
            key = (finding.rule, finding.primary.site)
            times[key] += 1  # a rule may say several things about one line
            seen_by.setdefault((key, times[key]), []).append((rank, finding))
    merged = [_one_finding(found, world_size) for found in seen_by.values()]
    return tuple(rooted(merged, all_rules()))


def _one_finding(found: list[tuple[int, Finding]], world_size: int) -> Finding:
    severities, confidences = list(Severity), list(Confidence)
    findings = [finding for _, finding in found]
    totals = [finding.seen.total for finding in findings]
    steps = [finding.seen.first_step for finding in findings if finding.seen.first_step is not None]
    seen = Seen(
        count=sum(finding.seen.count for finding in findings),
        total=None if None in totals else sum(total for total in totals if total is not None),
        unit=findings[0].seen.unit,
        first_step=min(steps, default=None),
    )
    return replace(
        findings[0],
        severity=min((finding.severity for finding in findings), key=severities.index),
        confidence=min((finding.confidence for finding in findings), key=confidences.index),
        seen=seen,
        cost=next((finding.cost for finding in findings if finding.cost), ""),
        rank=None if len(found) == world_size else found[0][0],
    )


def _verdicts(parts: Iterable[Summary]) -> tuple[Verdict, ...]:
    strength = [Outcome.FOUND, Outcome.CLEAR, Outcome.NOT_OBSERVED]
    best: dict[str, Verdict] = {}
    for part in parts:
        for verdict in part.verdicts:
            known = best.setdefault(verdict.rule, verdict)
            if strength.index(verdict.outcome) < strength.index(known.outcome):
                best[verdict.rule] = verdict
    return tuple(best.values())


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    try:
        return int(environment.get(name, default))
    except ValueError:
        return default


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """Write a file at once or not at all."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(data), encoding="utf-8")
    os.replace(draft, path)
