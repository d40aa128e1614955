"""One report for a distributed run: each rank writes its summary, and rank 0 collects and merges them.

The summaries are exchanged in a folder, not over the network: the program's process group can be gone or stuck when
the report is written. Ranks on several hosts need a folder that all of them see: that of the record.
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from truestep.errors import BadRecord
from truestep.findings import (
    Confidence,
    Coverage,
    Finding,
    LedgerLine,
    Outcome,
    Seen,
    Severity,
    Summary,
    Verdict,
    shown,
)
from truestep.rules import RankRule, all_rules
from truestep.source import suppressed
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.root_causes import rooted

PATIENCE_S = {"crashed": 2.0, "interrupted": 5.0}
"""Seconds that rank 0 waits for the others, by its own kind of end: after a crash, they can be stuck until it exits."""
LONGEST_S = 20.0
_SILENT_S = 2.0
"""Seconds that rank 0 waits for a rank without a file in the folder, which can run on another machine."""
_COUNTED = ("steps", "gradients", "parameters", "calls", "rate")
"""Accounts that are equal on ranks which train together; values of samples differ, and one rank saves."""
_ENDS = ("finished", "exited", "stopped", "interrupted", "unfinished", "crashed")


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank of this process, and number of ranks, from the environment set by torchrun."""

    rank: int
    world_size: int
    folder: Path
    """Folder for the exchange of summaries, and nothing else."""

    @classmethod
    def here(cls, environment: Mapping[str, str], record: Path | None = None) -> Ranks | None:
        """Return the rank of this process, or None for a single process.

        Args:
            environment: ``RANK``, ``WORLD_SIZE`` and the other variables of torchrun.
            record: a folder shared by all ranks, if the user passed one.
        """
        rank, world_size = _number(environment, "RANK", -1), _number(environment, "WORLD_SIZE", 1)
        if world_size < 2 or not 0 <= rank < world_size:
            return None
        if record is not None:
            return cls(rank, world_size, record / "exchange")
        run = [environment.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "MASTER_PORT")]
        # Run ids repeat ("none" is the default); the process number of the launcher and the restart count do not.
        run += [environment.get("TORCHELASTIC_RESTART_COUNT", "0"), str(os.getppid()), str(os.getuid())]
        name = re.sub(r"[^A-Za-z0-9]+", "_", "-".join(run))
        return cls(rank, world_size, Path(tempfile.gettempdir(), f"truestep-ranks-{name}"))

    def enter(self) -> None:
        """Write a file that shows that this rank is alive, and remove an earlier summary of the same rank.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._summary(self.rank).unlink(missing_ok=True)
        _write(self._presence(self.rank), {"process": os.getpid(), "host": socket.gethostname()})

    def leave(self, summary: Summary) -> None:
        """Write this rank's summary for rank 0, unless rank 0 has timed out and removed the folder."""
        with contextlib.suppress(FileNotFoundError):
            _write(self._summary(self.rank), to_dict(summary))

    def gather(self, own: Summary, *, patience_s: float | None = None) -> Summary:
        """Wait for the summaries of the other ranks, and merge them with that of rank 0; list the missing ranks.

        A rank with an ended process is not waited for: its summary is already there, or will never be.
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
        missing = set(range(self.world_size)) - found.keys()
        elsewhere = any(not self._presence(rank).exists() for rank in missing)
        shutil.rmtree(self.folder, ignore_errors=True)
        return replace(merge(found, self.world_size), ranks_elsewhere=elsewhere)

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
    """Return one summary merged from those of several ranks, by rank number."""
    order = sorted(summaries)
    parts = [summaries[rank] for rank in order]
    first = parts[0]
    compared, verdicts = comparison(summaries)
    findings = _findings(summaries, world_size, compared)
    return replace(
        first,
        how=max((part.how for part in parts), key=lambda how: _ENDS.index(how) if how in _ENDS else len(_ENDS)),
        steps=max(part.steps for part in parts),
        findings=findings,
        verdicts=tuple(verdicts.get(verdict.rule, verdict) for verdict in strongest(parts)),
        internal_errors=tuple(f"rank {rank}: {error}" for rank in order for error in summaries[rank].internal_errors),
        ranks=world_size,
        missing_ranks=tuple(rank for rank in range(world_size) if rank not in summaries),
        post_mortem=next((part.post_mortem for part in parts if part.post_mortem is not None), None),
        coverage=joint_coverage([part.coverage for part in parts]),
        ledger=tuple(_ledger(summaries, findings)),
    )


def _ledger(summaries: Mapping[int, Summary], findings: tuple[Finding, ...]) -> Iterator[LedgerLine]:
    """Yield the accounts of the first rank, with the texts of the ranks that counted something else."""
    first, *others = sorted(summaries)
    rules: dict[str, dict[str, None]] = {}
    known = all_rules()
    for finding in shown(findings):
        if finding.rule in known:
            rules.setdefault(known[finding.rule].account, {})[finding.rule] = None
    for line in summaries[first].ledger:
        texts = {
            str(rank): other.text
            for rank in others
            for other in summaries[rank].ledger
            if other.account == line.account and other.text != line.text and line.account in _COUNTED
        }
        facts = line.facts | {"ranks": texts} if texts else line.facts
        yield replace(line, facts=facts, rules=tuple(rules.get(line.account, ())))


def comparison(summaries: Mapping[int, Summary]) -> tuple[list[Finding], dict[str, Verdict]]:
    """Return the findings and verdicts of the rules that compare ranks, for the rules with facts of two ranks."""
    findings: list[Finding] = []
    verdicts: dict[str, Verdict] = {}
    for kind in all_rules().values():
        facts = {rank: part.rank_facts[kind.id] for rank, part in summaries.items() if kind.id in part.rank_facts}
        if not issubclass(kind, RankRule) or len(facts) < 2:
            continue
        shows = kind.compare(facts)
        if shows is None:
            continue
        found = [replace(finding, suppressed=suppressed(finding)) for finding in shows]
        certain = any(finding.confidence is not Confidence.LOW for finding in found)
        verdicts[kind.id] = Verdict(kind.id, Outcome.FOUND if certain else Outcome.CLEAR)
        findings += found
    return findings, verdicts


def joint_coverage(parts: Sequence[Coverage]) -> Coverage:
    """Return the coverage of several processes together."""
    return Coverage(
        called=any(part.called for part in parts),
        backward=any(part.backward for part in parts),
        fed=any(part.fed for part in parts),
        error=next((part.error for part in parts if part.error), ""),
        processes=sum(part.processes for part in parts),
        started=next((part.started for part in parts if part.started is not None), None),
        chance=parts[0].chance if all(part.chance is not None for part in parts) else None,
    )


def _findings(summaries: Mapping[int, Summary], world_size: int, compared: list[Finding]) -> tuple[Finding, ...]:
    seen_by: dict[object, list[tuple[int, Finding]]] = {}
    for rank in sorted(summaries):
        times: Counter[object] = Counter()
        for finding in summaries[rank].findings:
            key = (finding.rule, finding.primary.site)
            times[key] += 1  # a rule can have several findings at one line
            seen_by.setdefault((key, times[key]), []).append((rank, finding))
    merged = [_one_finding(found, world_size) for found in seen_by.values()]
    return tuple(rooted([*merged, *compared], all_rules()))


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


def strongest(parts: Iterable[Summary]) -> tuple[Verdict, ...]:
    """Return for each rule the strongest verdict of several summaries: found, then clear, then not observed."""
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
    """Write a file atomically."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(data), encoding="utf-8")
    os.replace(draft, path)
