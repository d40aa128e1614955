"""Runs variants of a script in child processes, each in a copy of the working folder, and reads what they did."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truestep.experiments.scratch import scratch
from truestep.watch.launch import Target

_LOOK_S = 0.2
"""Seconds between two looks at a child."""
_SILENT = {
    "WANDB_MODE": "disabled",
    "MLFLOW_TRACKING_URI": "file:mlruns",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONFAULTHANDLER": "0",
    "TRUESTEP_WATCH": "0",
}
"""What keeps trackers from telling the world about a variant, and python from writing beside its sources."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the script.

    Attributes:
        name: for people.
        changes: names of `truestep.experiments.changes`, each with its arguments.
    """

    name: str
    changes: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a variant did.

    Attributes:
        variant: which one.
        how: "finished", "stopped" after the steps asked for, "exited", "crashed", "interrupted", "killed" over a limit.
        losses: the loss of each step of the first optimizer; None where a step had no backward pass.
        steps: of the first optimizer.
        seconds: of the process.
        changes: what each change counted, by name.
        findings: the rule of each failure that was found.
        report: on the run, as text.
        said: the end of what it wrote, output and errors.
    """

    variant: Variant
    how: str
    losses: tuple[float | None, ...] = ()
    seconds: float = 0.0
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    report: str = ""
    said: str = ""

    @property
    def steps(self) -> int:
        """Steps of the first optimizer."""
        return len(self.losses)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where and how variants run.

    Attributes:
        target: the script or module, and its arguments.
        steps: after how many steps of its optimizers a variant ends.
        limit_s: after how many seconds it is ended.
        limit_bytes: how much memory it may hold, with all its processes; None for no limit.
        folder: where the user is.
        width: of reports.
    """

    target: Target
    steps: int
    limit_s: float = 600.0
    limit_bytes: int | None = None
    folder: Path = field(default_factory=Path.cwd)
    width: int = 80

    def run(self, variant: Variant) -> Outcome:
        """Run one variant to its end. Ctrl-C ends it, with all that it has started.

        Args:
            variant: what is otherwise.
        """
        with scratch(self.folder) as copy, tempfile.TemporaryDirectory(prefix="truestep-") as results:
            wanted = self._specification(variant, copy, Path(results))
            temporary = Path(results, "tmp")
            temporary.mkdir()
            path = Path(results, "wanted.json")
            path.write_text(json.dumps(wanted), encoding="utf-8")
            with Path(results, "said.txt").open("wb") as said:
                begun = time.perf_counter()
                how = self._wait(
                    subprocess.Popen(
                        [sys.executable, "-m", "truestep.experiments.child", str(path)],
                        cwd=copy,
                        env=os.environ | _SILENT | {"TMPDIR": str(temporary)},
                        stdin=subprocess.DEVNULL,
                        stdout=said,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
                seconds = time.perf_counter() - begun
            return self._outcome(variant, how, seconds, Path(results), str(copy))

    def _specification(self, variant: Variant, copy: Path, results: Path) -> dict[str, Any]:
        others = [Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")), Path("/dev")]
        return {
            "name": self.target.name if self.target.module else _found(self.target.name, self.folder),
            "arguments": list(self.target.arguments),
            "module": self.target.module,
            "changes": [[name, dict(arguments)] for name, arguments in variant.changes],
            "steps": self.steps,
            "results": str(results),
            "writable": [str(place) for place in (copy, results, *others)],
            "width": self.width,
        }

    def _wait(self, child: subprocess.Popen[bytes]) -> str:
        """Wait for a child; return "" when it ended by itself, "killed" when it was ended."""
        ends = time.monotonic() + self.limit_s
        try:
            while True:
                try:
                    child.wait(_LOOK_S)
                    return ""
                except subprocess.TimeoutExpired:
                    over = time.monotonic() > ends
                    if over or (self.limit_bytes is not None and _memory(child.pid) > self.limit_bytes):
                        return "killed"
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def _outcome(self, variant: Variant, how: str, seconds: float, results: Path, copy: str) -> Outcome:
        said = (results / "said.txt").read_text(encoding="utf-8", errors="replace")[-20_000:]
        told: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            told = json.loads((results / "outcome.json").read_text(encoding="utf-8"))
        here = f"{self.folder.resolve()}{os.sep}"
        return Outcome(
            variant,
            how or told.get("how", "crashed"),
            _losses(results / "steps.jsonl"),
            seconds,
            told.get("changes", {}),
            tuple(told.get("findings", ())),
            told.get("report", "").replace(f"{copy}{os.sep}", here),
            said.replace(f"{copy}{os.sep}", here),
        )


def _found(script: str, folder: Path) -> str:
    """Return the path of a script as it is found from the copy of a folder."""
    full = (folder / script).resolve()
    return str(full.relative_to(folder.resolve())) if full.is_relative_to(folder.resolve()) else str(full)


def _losses(path: Path) -> tuple[float | None, ...]:
    """Return the losses of the first optimizer; the line that a killed child was writing is left out."""
    found: list[float | None] = []
    with contextlib.suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in lines:
            with contextlib.suppress(ValueError):
                step = json.loads(line)
                if step["optimizer"] == 0:
                    found.append(step["loss"])
    return tuple(found)


def _memory(group: int) -> int:
    """Return the resident bytes of a group of processes; 0 where /proc does not tell."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return total
