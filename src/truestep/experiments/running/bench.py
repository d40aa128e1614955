"""Run variants of a script in child processes, each in a copy of the working folder, and read their outcomes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from truestep.experiments.running import ranks
from truestep.experiments.running.folder_copy import scratch
from truestep.experiments.running.inside.outside_reads import read_reads
from truestep.experiments.running.outcome import Interrupted, RunOutcome, Variant, read_outcome
from truestep.experiments.running.outcome_cache import OutcomeCache, user_caches
from truestep.supervision.launching.launch import Target

_LOOK_S = 0.1
"""Seconds between two checks of a child."""
_SILENT = {
    "WANDB_MODE": "disabled",
    "MLFLOW_TRACKING_URI": "file:mlruns",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "0",
    "TRUESTEP_WATCH": "0",
    "TRUESTEP_MIRRORING": "0",
}
"""Variables that keep trackers and mirrors from uploading a variant, and Python from writing beside its sources."""
_RANKED = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables that a child must not inherit: they belong to the processes of one run."""


@dataclass(frozen=True, slots=True)
class Bench:
    """The script to run, and the limits of its runs.

    Attributes:
        target: the script or module, and its arguments.
        steps: number of optimizer steps after which a variant is stopped; None runs it to its end.
        limit_s: time limit in seconds.
        limit_bytes: memory limit in bytes for all its processes together; None for no limit.
        processes: number of processes, started as torchrun does.
        folder: the user's working folder.
        cache: outcomes of earlier runs; None runs every variant.
        begins: called with each variant before it runs.
        cancelled: set by another thread to end the current run.
    """

    target: Target
    steps: int | None
    limit_s: float = 600.0
    limit_bytes: int | None = None
    processes: int = 1
    folder: Path = field(default_factory=Path.cwd)
    cache: OutcomeCache | None = None
    begins: Callable[[Variant], None] = lambda variant: None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def run(self, variant: Variant) -> RunOutcome:
        """Run one variant in a new copy of the folder. Ctrl-C ends it, with all processes that it has started."""
        key = (
            "" if self.cache is None else self.cache.key(self.folder, self.target, self.steps, self.processes, variant)
        )
        if self.cache is not None and (outcome := self.cache.find(key, variant)) is not None:
            return outcome
        begun_ns = time.time_ns()
        with self.place() as place:
            outcome = place.run(variant, from_start=True)
            if self.cache is not None:
                self.cache.add(key, outcome, read_reads(place.results), begun_ns)
        return outcome

    @contextmanager
    def place(self) -> Iterator[WorkingCopy]:
        """Yield one copy of the folder for several runs in sequence: each finds the files of the runs before it."""
        with scratch(self.folder) as copy, tempfile.TemporaryDirectory(prefix="truestep-") as results:
            yield WorkingCopy(self, copy, Path(results))


class WorkingCopy:
    """A copy of the working folder in which variants run one after another.

    Attributes:
        copy: path of the copy.

    Args:
        bench: the script and its limits.
        copy: path of the copy.
        results: folder for the results; each run gets a subfolder.
    """

    def __init__(self, bench: Bench, copy: Path, results: Path) -> None:
        self.bench = bench
        self.copy = copy
        self._results = results
        self._runs = 0

    @property
    def results(self) -> Path:
        """Folder with the results of the latest run."""
        return self._results / str(self._runs)

    def run(self, variant: Variant, *, from_start: bool = False) -> RunOutcome:
        """Run one variant in the folder, with the files of earlier runs.

        Args:
            variant: changes, instruments and arguments of the run.
            from_start: True lets a run of the toolkit start from the beginning although the folder holds checkpoints.
        """
        self.bench.begins(variant)
        self._runs += 1
        self.results.mkdir()
        temporary = self.results / "tmp"
        temporary.mkdir()
        path = self.results / "wanted.json"
        path.write_text(json.dumps(self._specification(variant, from_start)), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name not in _RANKED}
        environment |= _SILENT | {"TMPDIR": str(temporary)}
        environment.setdefault("PYTHONHASHSEED", "0")  # the order of a set is part of the order of data
        environment |= variant.environment
        places = {f"{self.copy}{os.sep}": f"{self.bench.folder.resolve()}{os.sep}"}
        begun = time.perf_counter()
        try:
            with (self.results / "said.txt").open("wb") as said:
                how = self._wait(_started(str(path), self.copy, environment, said))
        except KeyboardInterrupt:
            taken = time.perf_counter() - begun
            raise Interrupted(read_outcome(variant, "interrupted", taken, self.results, places)) from None
        seconds = time.perf_counter() - begun
        return read_outcome(variant, how, seconds, self.results, places)

    def _specification(self, variant: Variant, from_start: bool) -> dict[str, Any]:
        bench = self.bench
        others = [user_caches(), Path("/dev")]
        arguments = bench.target.arguments if variant.arguments is None else variant.arguments
        name = bench.target.name
        return {
            "name": name if bench.target.module else _found(name, bench.folder),
            "arguments": list(arguments),
            "module": bench.target.module,
            "changes": [[name, dict(arguments)] for name, arguments in variant.changes],
            "instruments": [[name, dict(arguments)] for name, arguments in variant.instruments],
            "steps": bench.steps,
            "processes": bench.processes,
            "from_start": from_start,
            "copy": str(self.copy),
            "results": str(self.results),
            "writable": [str(place) for place in (self.copy, self.results, *others)],
        }

    def _wait(self, child: subprocess.Popen[bytes]) -> str:
        """Wait for a child. Return "" if it ended, "killed" if a limit ended it or SIGKILL did."""
        ends = time.monotonic() + self.bench.limit_s
        limit = self.bench.limit_bytes
        try:
            while True:
                try:
                    return "killed" if child.wait(_LOOK_S) == -signal.SIGKILL else ""
                except subprocess.TimeoutExpired:
                    over = time.monotonic() > ends or self.bench.cancelled.is_set()
                    if over or (limit is not None and _memory(child.pid) > limit):
                        return "killed"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _started(specification: str, folder: Path, environment: dict[str, str], said: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ranks.again(specification),
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _found(script: str, folder: Path) -> str:
    """Return the path of a script, relative to the folder if it lies below it, so that the copy is used."""
    full = (folder / script).resolve()
    return str(full.relative_to(folder.resolve())) if full.is_relative_to(folder.resolve()) else str(full)


def _memory(group: int) -> int:
    """Return the resident bytes of a process group; 0 without /proc."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return total
