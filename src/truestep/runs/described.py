"""One run on disk: when it ran, how far it came, and its results."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from truestep.errors import BadRecord
from truestep.runs.folders import kind_of

_OWN = ("step", "epoch")
"""Values of a line of a log that say where it belongs."""
_BESIDE = ("lr", "grad_norm", "skipped_steps")
"""Values that describe the training: the last ones to be shown."""


@dataclass(frozen=True, slots=True)
class DescribedRun:
    """A run.

    Attributes:
        path: its folder.
        kind: "run" for a `truestep.Run`, "record" for a record of a supervised script.
        state: "running", "finished", "crashed", "stopped", "interrupted", "exited", or "unfinished" if it has not
            reached its end and does not run: it was killed, has failed, or saved and ended early.
        when: time of the last change; None if unknown.
        revision: commit of the code, with "+" for uncommitted changes; "" if unknown.
        steps: number of steps; None if unknown.
        results: last values by name.
        best: metric of the best checkpoint; None without one.
        findings: ids of the rules with a finding; None if this is not stored.
        settings: settings and provenance by name, as text.
        problem: the reason if it cannot be read; else "".
    """

    path: Path
    kind: str
    state: str
    when: datetime | None = None
    revision: str = ""
    steps: int | None = None
    results: Mapping[str, float] = field(default_factory=dict)
    best: float | None = None
    findings: tuple[str, ...] | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def loss(self) -> float | None:
        """Last training loss; None without one."""
        return next((value for name, value in self.results.items() if name in ("loss", "train_loss")), None)

    @property
    def metric(self) -> tuple[str, float] | None:
        """Name and value of the last result that is neither the loss nor a rate; None without one."""
        others = [item for item in self.results.items() if item[0] not in ("loss", "train_loss", *_BESIDE)]
        others = [item for item in others if not item[0].startswith(tuple(f"{name}/" for name in _BESIDE))]
        return others[-1] if others else None


def describe(folder: Path) -> DescribedRun:
    """Return the description of a run; of one that cannot be read, with the reason.

    Args:
        folder: the folder of a run or of a record.
    """
    try:
        return _of_record(folder) if kind_of(folder) == "record" else _of_run(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadRecord) as error:
        reason = error.happened if isinstance(error, BadRecord) else f"{type(error).__name__}: {error}"
        return DescribedRun(folder, kind_of(folder), "unreadable", problem=reason)


def _of_run(folder: Path) -> DescribedRun:
    settings = _json(folder / "settings.json")
    environment = _json(folder / "environment.json")
    last, steps = _last_values(folder / "metrics.jsonl")
    manifests = [_json(path) for path in sorted((folder / "checkpoints").glob("step-*/manifest.json"))]
    saved = max(manifests, key=lambda manifest: manifest["step"], default=None)
    best = None
    with suppress(OSError, ValueError):
        best = _json(folder / "checkpoints" / "best" / "manifest.json").get("metric")
    if saved is not None:
        steps = max(steps or 0, int(saved["step"]))
    logs = [folder / name for name in ("metrics.jsonl", "system.jsonl", "settings.json")]
    changed = max((path.stat().st_mtime for path in logs if path.is_file()), default=None)
    git = environment.get("git") or {}
    described = {name: _text(value) for name, value in settings.items() if name != "out"}
    described |= {f"package {name}": str(version) for name, version in (environment.get("packages") or {}).items()}
    described |= {name: _text(environment.get(name)) for name in ("python", "device", "device_name")}
    described["arguments"] = " ".join(map(str, (environment.get("command") or [])[2:]))
    return DescribedRun(
        folder,
        "run",
        _state(folder, settings, saved, steps),
        _time(changed),
        str(git.get("commit", ""))[:7] + ("+" if git.get("changed") else ""),
        steps,
        last,
        best,
        None,
        described,
    )


def _state(folder: Path, settings: Mapping[str, Any], saved: Mapping[str, Any] | None, steps: int | None) -> str:
    """Return the state of a run: it is locked while it runs, and has saved its last epoch or step if it finished."""
    if _is_locked(folder / ".lock"):
        return "running"
    epochs, most = settings.get("max_epochs"), settings.get("max_steps")
    over = (most and (steps or 0) >= most) or (epochs and saved is not None and saved["epoch"] >= epochs)
    return "finished" if over else "unfinished"


def _is_locked(path: Path) -> bool:
    """Return True if a process holds the lock of a run."""
    try:
        import fcntl

        descriptor = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _last_values(path: Path) -> tuple[dict[str, float], int | None]:
    """Return the last value of each name in a log, in the order of their first lines, and the last step."""
    values: dict[str, float] = {}
    step = None
    with suppress(OSError), path.open(encoding="utf-8") as lines:
        for line in _complete(lines):
            step = int(line.get("step", step or 0))
            for name, value in line.items():
                if name not in _OWN and isinstance(value, int | float) and not isinstance(value, bool):
                    values[name] = float(value)
    return values, step


def _complete(lines: Any) -> Iterator[dict[str, Any]]:
    for line in lines:
        with suppress(ValueError):  # the line that a killed run was writing
            value = json.loads(line)
            if isinstance(value, dict):
                yield value


def _of_record(folder: Path) -> DescribedRun:
    from truestep.supervision import record

    summary = record.read(folder)
    lines = {line.account: line.text for line in summary.ledger}
    losses = [place for line in summary.ledger if line.account == "loss" for place in line.facts.get("lines", ())]
    results = {}
    if losses and isinstance(losses[0].get("last"), int | float):
        results["loss"] = float(losses[0]["last"])
    return DescribedRun(
        folder,
        "record",
        summary.how,
        _time((folder / "rank-0.jsonl").stat().st_mtime),
        "",
        summary.steps,
        results,
        None,
        tuple(dict.fromkeys(finding.rule for finding in summary.shown())),
        {"script": summary.script, "package torch": summary.torch, "ranks": str(summary.ranks), **lines},
    )


def _json(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} has no object")
    return value


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None or not math.isfinite(seconds) else datetime.fromtimestamp(seconds, UTC)
