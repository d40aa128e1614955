"""`metrics.jsonl`: one line per logged moment, without a synchronisation per step.

Values stay tensors until the lines are written, then all of them are read in one copy per device and dtype, together
with what the run watches by itself. A line holds nothing but step, epoch and values, so that a resumed run writes the
lines of an uninterrupted one, byte for byte. Clocks go elsewhere.
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
from truestep.loop.log.early_stopping import Stalls
from truestep.loop.log.line_file import LineFile
from truestep.loop.log.log_copies import Outlets
from truestep.loop.process.stacklevel import outside
from truestep.loop.process.terminal import say
from truestep.trackers.line import Line
from truestep.trackers.tracking import Ending

_MOST_WATCHED = 500
"""Values of the run's own that are kept before they are read, where nothing is logged."""


@dataclass(frozen=True, slots=True)
class _Watched(Line):
    """A value of the run's own, which is no line of the log.

    Attributes:
        kinds: the rules of its alerts.
    """

    kinds: tuple[str, ...] = ()


class Logs:
    """Keeps what is logged, and writes it down every few steps.

    Args:
        path: the file; None keeps the last values only.
        every: lines kept before they are written.
        alerts: shown every value that was read.
        outlets: where lines are copied to, and what clocks say is written.
    """

    def __init__(
        self, path: Path | None, *, every: int = 50, alerts: Alerts | None = None, outlets: Outlets | None = None
    ) -> None:
        self.path = path
        self._file = None if path is None else LineFile(path, failed=self._not_written)
        self.every = every
        self.last: dict[str, float] = {}
        """The last value of every name in this epoch, as of the last writing."""
        self.alerts = alerts if alerts is not None else Alerts(None, show=_nowhere, defaults=False)
        self.outlets = outlets
        self.stalls = Stalls()
        self._kept: list[Line] = []
        self._lines = 0
        self._flushing = False
        self._cut_short = False
        self._place = (0, 0)
        """Step and epoch of the last line that was to be written."""
        self._watched: tuple[torch.Tensor, int, torch.Tensor] | None = None
        """The last value that was copied for the alerts: an alias of it, its version then, and the copy.

        The alias keeps the memory, not the graph, and shares the version. A weak reference would do as well, but
        `torch.utils.swap_tensors` refuses a tensor that has one.
        """

    def log(self, values: Mapping[str, Any], *, step: int, epoch: int, own: Mapping[str, Any] | None = None) -> None:
        """Keep one line.

        Args:
            values: numbers, strings, or tensors of one element, which are detached, and read later; or means and
                metrics, of which `compute()` gives one.
            own: the run's numbers and tensors of one element, which nobody changes later.
            step: steps taken.
            epoch: the epoch under way.

        Raises:
            BadLogValue: a value that is none of these.
        """
        kept: dict[str, Any] = {}
        for name, given in values.items():
            value = given.compute() if callable(getattr(given, "compute", None)) else given
            if isinstance(value, torch.Tensor):
                if value.numel() != 1:
                    raise BadLogValue(
                        f'"{name}" has {value.numel()} elements',
                        expected=f"one number, got a tensor of shape {tuple(value.shape)}",
                        remedy=f'log its mean: run.log({{"{name}": value.mean()}})',
                    )
                watched = self._watched
                if watched is not None and _same(watched[0], value) and watched[1] == watched[0]._version:
                    kept[name] = watched[2]
                else:
                    kept[name] = value.detach().clone()  # the user may go on to change it in place
            elif isinstance(value, bool | int | float | str):
                kept[name] = value
            elif hasattr(value, "item") and getattr(value, "size", 1) == 1:
                kept[name] = value.item()
            else:
                raise BadLogValue(
                    f'"{name}" is {type(value).__name__}',
                    expected="a number, a string or a tensor of one element",
                    remedy="log a number",
                )
        if own:
            kept.update({name: value for name, value in own.items() if name not in kept})
        self._kept.append(Line(step, epoch, kept))
        self._lines += 1
        if self._lines >= self.every:
            self.flush()

    def watch(
        self, name: str, value: torch.Tensor, kinds: tuple[str, ...], *, step: int, epoch: int, copied: bool = False
    ) -> None:
        """Keep a value for the alerts alone; it is read with the lines, and is not written.

        Args:
            name: as alerts call it.
            value: a tensor of one element; with `copied` one that somebody could change later.
            kinds: the rules of its alerts.
            step: the step that it is for.
            epoch: the epoch under way.
            copied: whether to copy it; the copy serves its line of the log, too.
        """
        kept = value.detach()
        if copied:
            alias, kept = kept, kept.clone()
            # an alias of a view would keep all that it is a view of
            self._watched = (alias, alias._version, kept) if value._base is None else None
        value = kept
        self._kept.append(_Watched(step, epoch, {name: value}, kinds))
        if len(self._kept) >= _MOST_WATCHED + self.every:
            self.flush()

    def waits(self, name: str) -> bool:
        """Whether a value of that name was logged and not read yet."""
        return any(name in line.values for line in self._kept if type(line) is Line)

    def flush(self) -> None:
        """Read the tensors, write the lines, and show the values to the alerts."""
        if not self._kept or self._flushing:
            return
        kept, self._kept, self._lines = self._kept, [], 0
        _read_tensors(kept)
        lines = [line for line in kept if type(line) is Line]
        for line in lines:
            self.last.update({name: value for name, value in line.values.items() if not isinstance(value, str)})
        self._flushing = True  # what an alert leads to may log
        try:
            if lines:
                if self.outlets is not None:
                    self.outlets.open()  # before there are lines that they are told of, too
                if self._file is not None:
                    self._place = lines[-1].step, lines[-1].epoch
                    self._file.add([line.text() for line in lines])
                if self.outlets is not None:
                    self.outlets.write(lines)
            for line in kept:
                if isinstance(line, _Watched):
                    for name, value in line.values.items():
                        self.alerts.given(line.step, line.epoch, name, float(value), line.kinds)
                else:
                    self.stalls.logged(line.values)
                    self.alerts.logged(line.step, line.epoch, line.values)
        finally:
            self._flushing = False

    def end_epoch(self) -> None:
        """Forget the values of the epoch; its lines are written."""
        self.flush()
        self.last.clear()

    def secure(self) -> int:
        """Write everything, to the disk itself, and return how many bytes the file has."""
        self.flush()
        return 0 if self._file is None else self._file.secure()

    def cut(self, size: int) -> None:
        """Drop what was written after the checkpoint that the run resumes from.

        Args:
            size: bytes the file had then.
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
        """Warn that the file is shorter than at the checkpoint; end its last line, which is cut short."""
        assert self.path is not None
        warnings.warn(
            f"{self.path} has {held:,} bytes and had {size:,} when the checkpoint was made: lines of it are lost; "
            "the training goes on",
            InexactResume,
            stacklevel=outside(),
        )
        if held and self.path.read_bytes()[-1:] != b"\n":
            with self.path.open("ab") as file:
                file.write(b"\n")

    def close(self, ending: Ending) -> None:
        """End what the lines are copied to. Calling it twice is harmless.

        Args:
            ending: of the run.
        """
        if self._file is not None:
            self._file.add(())
            if unwritten := len(self._file.waiting) + self._file.lost:
                steps = [json.loads(line).get("step") for line in self._file.waiting]
                span = f", steps {steps[0]} to {steps[-1]}" if steps and not self._file.lost else ""
                say(f"truestep: {unwritten:,} lines of {self.path}{span} could not be written and are lost")
                self._file.waiting.clear()
                self._file.lost = 0
        if self.outlets is not None:
            self.outlets.close(ending)

    def _not_written(self, error: OSError) -> None:
        """Say once that the log cannot be written; the lines wait."""
        assert self.path is not None
        message = f"{self.path.name} cannot be written ({error.strerror}); the training goes on, and its lines wait"
        self.alerts.happened(*self._place, self.path.name, "not-written", message)

    def state_dict(self) -> dict[str, Any]:
        """Return what alerts and early stopping need to go on in a resumed run; all values have been read."""
        self.flush()
        outlets = 0 if self.outlets is None else self.outlets.size()
        waiting = [] if self._file is None else list(self._file.waiting)
        return {
            "alerts": self.alerts.state_dict(),
            "stalls": self.stalls.state_dict(),
            "system_bytes": outlets,
            "waiting": waiting,
        }

    def load_state_dict(self, state: dict[str, Any], *, step: int) -> None:
        """Take up where another run was.

        Args:
            state: what `state_dict()` returned.
            step: of the checkpoint.
        """
        self.alerts.load_state_dict(state["alerts"])
        self.stalls.load_state_dict(state["stalls"])
        if self._file is not None:
            self._file.waiting = list(state.get("waiting", ()))
        if self.outlets is not None:
            self.outlets.cut(state["system_bytes"], step)


def _nowhere(text: str) -> None:
    """Show a text to nobody."""


def _same(alias: torch.Tensor, value: torch.Tensor) -> bool:
    """Return True if a tensor of one element is in the memory of an alias that is still held."""
    if type(value) is not torch.Tensor or type(alias) is not torch.Tensor or value.is_sparse:
        return False
    return value.dtype == alias.dtype and value.device == alias.device and value.data_ptr() == alias.data_ptr() != 0


def _single(value: torch.Tensor) -> torch.Tensor:
    return value if value.dim() == 0 else value.reshape(())


def _read_tensors(lines: list[Line]) -> None:
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
