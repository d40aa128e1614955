"""Processes that a supervised program starts by multiprocessing: each has a session, and the parent merges the reports.

A child writes its summary to a folder of the parent before it ends, and its record beside that of the parent. Daemons
and workers of loaders, pools and servers do not train and are left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truestep.config import Options
from truestep.errors import BadRecord
from truestep.events import Site
from truestep.findings import Summary
from truestep.rules import all_rules
from truestep.supervision.exchange import from_dict, to_dict
from truestep.supervision.ranks import joint_coverage, merge, strongest
from truestep.supervision.record import folder_of_child
from truestep.supervision.root_causes import rooted

if TYPE_CHECKING:
    from truestep.supervision.session import Session

_PATIENCE_S = 10.0
"""Seconds that the parent waits at its end for the summaries of children that still run."""
_SHORT_S = 1.0
"""The same after an error or an interrupt."""
_EARLY = 100
"""Priority of the end of a session among the finalizers of a process."""
_MOST = 64
"""Processes that are supervised; a program that starts more of them starts workers."""


class WatchedProcess:
    """The body of a process in a session; takes the place of ``_bootstrap`` of the process until it has started.

    No frame of it is between multiprocessing and the function of the program, so that tracebacks stay the same.

    Args:
        process: the process.
        file: the summary is written to this file.
        options: options of the session in the child.
        script: name of the program.
    """

    def __init__(self, process: Any, file: Path, options: Options, script: str) -> None:
        self.process = process
        self.file = file
        self.options = options
        self.script = script

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the process, in the child."""
        # `_bootstrap` calls `_after_fork`, which clears the finalizers, and then the function of the program.
        self.process._after_fork = self.after_fork
        return type(self.process)._bootstrap(self.process, *args, **kwargs)

    def after_fork(self) -> None:
        type(self.process)._after_fork()
        self.begin()

    def begin(self) -> None:
        """Start the session. A process without torch does not train, and importing it takes seconds."""
        if "torch" not in sys.modules:
            return
        from truestep.supervision.session import Session

        session = Session(self.options, script=self.script)
        try:
            session.start()
        except Exception:
            traceback.print_exc()
            return
        # Imported in the child: its import makes an alias of `__main__`, before the program's is in place.
        from multiprocessing import util

        util.Finalize(None, self.end, args=(session,), exitpriority=_EARLY)

    def end(self, session: Session) -> None:
        """Write the summary. Runs while an exception of the program is on its way."""
        error = sys.exception()
        if isinstance(error, SystemExit) and error.code and error.__context__ is not None:
            error = error.__context__  # torch.multiprocessing reports an exception, and then exits
        if isinstance(error, Exception):
            session.examine(error)
        if isinstance(error, SystemExit):
            how = "crashed" if error.code else "exited"
        else:
            how = "finished" if error is None else "interrupted" if isinstance(error, KeyboardInterrupt) else "crashed"
        draft = self.file.with_suffix(".part")
        summary = json.dumps(to_dict(session.stop(how)))
        with contextlib.suppress(OSError):  # the parent has ended, and has removed the folder
            draft.write_text(summary, encoding="utf-8")
            draft.replace(self.file)


@dataclass(slots=True)
class _Child:
    process: weakref.ref[Any]
    site: Site | None
    file: Path


class Children:
    """The supervised processes of a session.

    Args:
        options: options of the session.
        script: name of the program.
    """

    def __init__(self, options: Options, script: str) -> None:
        self._options = replace(options, output=None)
        self._script = script
        self._folder: Path | None = None
        self._started: list[_Child] = []
        self._owner = os.getpid()

    def enrol(self, process: Any, site: Site | None) -> bool:
        """Prepare the session of a process that is about to start; return False if the process is not supervised.

        Args:
            process: a process of multiprocessing.
            site: line that starts it.
        """
        if getattr(process, "_popen", None) is not None:  # `start` will refuse a process that has started
            return True
        if process.daemon or os.getpid() != self._owner or len(self._started) == _MOST:
            return False
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="truestep-children-"))
        number = len(self._started)
        file = self._folder / f"{number}.json"
        process._bootstrap = WatchedProcess(process, file, self._options_of(number), self._script)
        self._started.append(_Child(weakref.ref(process), site, file))
        return True

    def _options_of(self, number: int) -> Options:
        record = self._options.record
        if record is None:
            return self._options
        own = folder_of_child(record, int(os.environ.get("RANK", "0")), number)
        with contextlib.suppress(OSError):  # the child has no record then
            own.mkdir(parents=True, exist_ok=True)
        return replace(self._options, record=own if own.is_dir() else None)

    def merged(self, own: Summary) -> Summary:
        """Return the summary of the parent with those of its children that trained; remove the folder."""
        if self._folder is None or os.getpid() != self._owner:
            return own
        self._wait(_PATIENCE_S if own.how == "finished" else _SHORT_S)
        read = [(child.site, _read(child.file)) for child in self._started]
        shutil.rmtree(self._folder, ignore_errors=True)
        return with_children(own, read)

    def _wait(self, patience_s: float) -> None:
        """Wait for the files of the processes that still run."""
        until = time.monotonic() + patience_s
        waiting = self._started
        while waiting and time.monotonic() < until:
            waiting = [child for child in waiting if not child.file.exists() and _runs(child.process())]
            if waiting:
                time.sleep(0.02)


def with_children(own: Summary, read: Sequence[tuple[Site | None, Summary | None]]) -> Summary:
    """Return the summary of a parent with those of its children that trained.

    Args:
        own: of the parent.
        read: for each child, the line that started it and its summary; None for one that wrote none.
    """
    silent = [site for site, summary in read if summary is None]
    coverage = own.coverage
    if silent:
        started = coverage.started or silent[0]
        coverage = replace(coverage, processes=coverage.processes + len(silent), started=started)
    own = replace(own, coverage=coverage)
    trained = [summary for _, summary in read if summary is not None and _trains(summary)]
    for group in _groups(trained):
        own = _joined(own, _of_ranks(group))
    return own


def _runs(process: Any) -> bool:
    try:
        return process is not None and bool(process.is_alive())
    except (AssertionError, ValueError):  # closed, or started by another process
        return False


def _read(file: Path) -> Summary | None:
    try:
        return from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, BadRecord):
        return None


def _trains(summary: Summary) -> bool:
    return bool(summary.steps or summary.coverage.backward or summary.internal_errors or summary.post_mortem)


def _groups(summaries: Iterable[Summary]) -> list[dict[int, Summary]]:
    """Return the summaries by rank; a second process of one rank begins another group."""
    groups: list[dict[int, Summary]] = []
    for summary in summaries:
        rank = summary.rank_facts.get("group", {}).get("rank")
        if not groups or (rank is not None and rank in groups[-1]):
            groups.append({})
        group = groups[-1]
        group[max(group, default=-1) + 1 if rank is None else rank] = summary
    return groups


def _of_ranks(group: dict[int, Summary]) -> Summary:
    if len(group) == 1:
        return next(iter(group.values()))
    known = [summary.rank_facts.get("group", {}).get("world_size", 0) for summary in group.values()]
    return merge(group, max(*known, *(rank + 1 for rank in group)))


def _joined(own: Summary, others: Summary) -> Summary:
    """Return the summary of a parent, with that of a group of its children."""
    leads, follows = (own, others) if own.steps or own.coverage.backward else (others, own)
    coverage = joint_coverage([own.coverage, others.coverage])
    return replace(
        own,
        steps=max(own.steps, others.steps),
        findings=tuple(rooted([*own.findings, *others.findings], all_rules())),
        verdicts=strongest([leads, follows]),
        internal_errors=(*own.internal_errors, *others.internal_errors),
        ranks=max(own.ranks, others.ranks),
        missing_ranks=own.missing_ranks or others.missing_ranks,
        post_mortem=own.post_mortem or others.post_mortem,
        coverage=replace(coverage, fed=leads.coverage.fed, chance=leads.coverage.chance),
        ledger=leads.ledger,
        timeline=leads.timeline,
    )
