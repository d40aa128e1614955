"""`metrics.jsonl`: one line per call of `run.log()`, without a synchronisation per step.

Values stay tensors until the lines are written. Then all are read in one copy per device and dtype, together with the
values that the run checks for alerts. A line has only step, epoch and values, so a resumed run writes the same lines as
an uninterrupted one, byte for byte. Times are written to `system.jsonl`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from truestep.errors import BadLogValue, InexactResume
from truestep.loop.log.alerts import Alerts
from truestep.loop.log.early_stopping import EarlyStopping
from truestep.loop.log.line_file import LineFile
from truestep.loop.log.log_copies import LogCopies
from truestep.loop.process.stacklevel import outside
from truestep.loop.process.terminal import say
from truestep.trackers.line import LogLine
from truestep.trackers.tracking import Ending

_MOST_WATCHED = 500
"""Most buffered values for alerts, if nothing is logged."""


@dataclass(frozen=True, slots=True)
class _Watched(LogLine):
    """A value for alerts, which is not written to the log.

    Attributes:
        kinds: the rules of its alerts.
    """

    kinds: tuple[str, ...] = ()


class Logs:
    """Buffers logged values, and writes them every few lines.

    Args:
        path: the file; None to keep only the last values.
        every: number of lines to buffer before they are written.
        alerts: checks every value that was read.
        copies: copies of the log.
    """

    def __init__(
        self, path: Path | None, *, every: int = 50, alerts: Alerts | None = None, copies: LogCopies | None = None
    ) -> None:
        self.path = path
        self._file = None if path is None else LineFile(path, failed=self._not_written)
        self.every = every
        self.last: dict[str, float] = {}
        """Last value of every name in this epoch, updated when lines are written."""
        self.alerts = alerts if alerts is not None else Alerts(None, show=_nowhere, defaults=False)
        self.copies = copies
        self.early_stopping = EarlyStopping()
        self._kept: list[LogLine] = []
        self._lines = 0
        self._flushing = False
        self._cut_short = False
        self._place = (0, 0)
        """Step and epoch of the last line, written or not."""
        self._watched: tuple[torch.Tensor, int, torch.Tensor] | None = None
        """The last value copied for alerts: an alias of it, its version at that time, and the copy.

        The alias keeps the memory, not the graph, and shares the version. A weak reference is not possible, since
        `torch.utils.swap_tensors` rejects tensors with weak references.
        """

    def log(self, values: Mapping[str, Any], *, step: int, epoch: int, own: Mapping[str, Any] | None = None) -> None:
        """Buffer one line.

        Args:
            values: numbers, strings, or tensors of one element, which are detached and read later; or objects with a
                `compute()` that returns one of these.
            own: numbers and tensors of one element from the run, which are not modified later.
            step: number of steps.
            epoch: the current epoch.

        Raises:
            BadLogValue: a value has another type, or several elements.
        """
        kept: dict[str, Any] = {}
        for name, given in values.items():
            value = given.compute() if callable(getattr(given, "compute", None)) else given
            if isinstance(value, torch.Tensor):
                if value.numel() != 1:
                    raise BadLogValue(
                        f'"{name}" must be one number, got a tensor of shape {tuple(value.shape)}',
                        remedy=f'log its mean: run.log({{"{name}": value.mean()}})',
                    )
                watched = self._watched
                if watched is not None and _same(watched[0], value) and watched[1] == watched[0]._version:
                    kept[name] = watched[2]
                else:
                    kept[name] = value.detach().clone()  # the user can modify it in place later
            elif isinstance(value, bool | int | float | str):
                kept[name] = value
            elif hasattr(value, "item") and getattr(value, "size", 1) == 1:
                kept[name] = value.item()
            else:
                raise BadLogValue(
                    f'"{name}" must be a number, a string or a tensor of one element, got {type(value).__name__}',
                    remedy="log a number",
                )
        if own:
            kept.update({name: value for name, value in own.items() if name not in kept})
        self._kept.append(LogLine(step, epoch, kept))
        self._lines += 1
        if self._lines >= self.every:
            self.flush()

    def watch(
        self, name: str, value: torch.Tensor, kinds: tuple[str, ...], *, step: int, epoch: int, copied: bool = False
    ) -> None:
        """Buffer a value for alerts only; it is read with the lines, and is not written.

        Args:
            name: name in alerts.
            value: a tensor of one element.
            kinds: the rules of its alerts.
            step: number of the step.
            epoch: the current epoch.
            copied: copy the value, since it can be modified later; `log` reuses the copy for the same tensor.
        """
        kept = value.detach()
        if copied:
            alias, kept = kept, kept.clone()
            # an alias of a view would keep the whole base tensor in memory
            self._watched = (alias, alias._version, kept) if value._base is None else None
        value = kept
        self._kept.append(_Watched(step, epoch, {name: value}, kinds))
        if len(self._kept) >= _MOST_WATCHED + self.every:
            self.flush()

    def waits(self, name: str) -> bool:
        """Return True if a value of that name was logged and not read yet."""
        return any(name in line.values for line in self._kept if type(line) is LogLine)

    def flush(self) -> None:
        """Read the tensors, write the lines, and check the values for alerts and early stopping."""
        if not self._kept or self._flushing:
            return
        kept, self._kept, self._lines = self._kept, [], 0
        _read_tensors(kept)
        lines = [line for line in kept if type(line) is LogLine]
        for line in lines:
            self.last.update({name: value for name, value in line.values.items() if not isinstance(value, str)})
        self._flushing = True  # a callback of an alert can call run.log()
        try:
            if lines:
                if self.copies is not None:
                    self.copies.open()  # before the file has these lines: trackers start with a copy of its lines
                if self._file is not None:
                    self._place = lines[-1].step, lines[-1].epoch
                    self._file.add([line.text() for line in lines])
                if self.copies is not None:
                    self.copies.write(lines)
            for line in kept:
                if isinstance(line, _Watched):
                    for name, value in line.values.items():
                        self.alerts.check_own(line.step, line.epoch, name, float(value), line.kinds)
                else:
                    self.early_stopping.logged(line.values)
                    self.alerts.logged(line.step, line.epoch, line.values)
        finally:
            self._flushing = False

    def end_epoch(self) -> None:
        """Write the lines of the epoch, and clear its last values."""
        self.flush()
        self.last.clear()

    def secure(self) -> int:
        """Write all lines, flush the file to the disk (`fsync`), and return its size in bytes."""
        self.flush()
        return 0 if self._file is None else self._file.secure()

    def cut(self, size: int) -> None:
        """Truncate the file to the checkpoint that the run resumes from.

        Args:
            size: its size at the checkpoint, in bytes.
        """
        self._kept.clear()
        self._lines = 0
        if self.path is None:
            return
        held = self.path.stat().st_size if self.path.exists() else 0
        if held > size:
            os.truncate(self.path, size)
        elif held < size and not self._cut_short:
            self._cut_short = True
            self._warn_of_loss(held, size)

    def _warn_of_loss(self, held: int, size: int) -> None:
        """Warn that the file is shorter than at the checkpoint; end an incomplete last line."""
        assert self.path is not None
        warnings.warn(
            f"{self.path} has {held:,} bytes and had {size:,} at the checkpoint: lines of it are lost; "
            "the training goes on",
            InexactResume,
            stacklevel=outside(),
        )
        if held and self.path.read_bytes()[-1:] != b"\n":
            with self.path.open("ab") as file:
                file.write(b"\n")

    def close(self, ending: Ending) -> None:
        """Write waiting lines, and close the copies of the log; a second call does nothing.

        Args:
            ending: the end of the run.
        """
        if self._file is not None:
            self._file.add(())
            if unwritten := len(self._file.waiting) + self._file.lost:
                steps = [json.loads(line).get("step") for line in self._file.waiting]
                span = f", steps {steps[0]} to {steps[-1]}" if steps and not self._file.lost else ""
                say(f"truestep: {unwritten:,} lines of {self.path}{span} could not be written and are lost")
                self._file.waiting.clear()
                self._file.lost = 0
        if self.copies is not None:
            self.copies.close(ending)

    def _not_written(self, error: OSError) -> None:
        """Raise an alert once that the log cannot be written; its lines are kept."""
        assert self.path is not None
        message = f"{self.path.name} cannot be written ({error.strerror}); the training goes on, and its lines wait"
        self.alerts.happened(*self._place, self.path.name, "not-written", message)

    def state_dict(self) -> dict[str, Any]:
        """Read all values; return the state of alerts, early stopping and files for a resumed run."""
        self.flush()
        copies = 0 if self.copies is None else self.copies.size()
        waiting = [] if self._file is None else list(self._file.waiting)
        return {
            "alerts": self.alerts.state_dict(),
            "stalls": self.early_stopping.state_dict(),
            "system_bytes": copies,
            "waiting": waiting,
        }

    def load_state_dict(self, state: dict[str, Any], *, step: int) -> None:
        """Restore the state of another run.

        Args:
            state: return value of `state_dict()`.
            step: step of the checkpoint.
        """
        self.alerts.load_state_dict(state["alerts"])
        self.early_stopping.load_state_dict(state["stalls"])
        if self._file is not None:
            self._file.waiting = list(state.get("waiting", ()))
        if self.copies is not None:
            self.copies.cut(state["system_bytes"], step)


def _nowhere(text: str) -> None:
    """Ignore a text."""


def _same(alias: torch.Tensor, value: torch.Tensor) -> bool:
    """Return True if a tensor of one element has the same memory as an alias."""
    if type(value) is not torch.Tensor or type(alias) is not torch.Tensor or value.is_sparse:
        return False
    return value.dtype == alias.dtype and value.device == alias.device and value.data_ptr() == alias.data_ptr() != 0


def _single(value: torch.Tensor) -> torch.Tensor:
    return value if value.dim() == 0 else value.reshape(())


def _read_tensors(lines: list[LogLine]) -> None:
    """Replace tensors by numbers, in one copy per device and dtype."""
    found: dict[tuple[torch.device, torch.dtype], list[tuple[dict[str, Any], str]]] = {}
    for line in lines:
        for name, value in line.values.items():
            if isinstance(value, torch.Tensor):
                found.setdefault((value.device, value.dtype), []).append((line.values, name))
    for places in found.values():
        numbers = torch.stack([_single(values[name]) for values, name in places]).tolist()
        for (values, name), number in zip(places, numbers, strict=True):
            values[name] = number
