"""`metrics.jsonl`: one line per logged moment, without a synchronisation per step.

Values stay tensors until the lines are written, then all of them are read in one copy per device. A line holds nothing
but step, epoch and values, so that a resumed run writes the lines of an uninterrupted one, byte for byte.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from truestep.errors import BadLogValue


class Logs:
    """Keeps what is logged, and writes it down every few steps.

    Args:
        path: the file; None keeps the last values only.
        every: lines kept before they are written.
    """

    def __init__(self, path: Path | None, *, every: int = 50) -> None:
        self.path = path
        self.every = every
        self.last: dict[str, float] = {}
        """The last value of every name in this epoch, as of the last writing."""
        self._lines: list[tuple[int, int, dict[str, Any]]] = []

    def log(self, values: Mapping[str, Any], *, step: int, epoch: int) -> None:
        """Keep one line.

        Args:
            values: numbers, strings, or tensors of one element, which are detached, and read later; or means and
                metrics, of which `compute()` gives one.
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
        self._lines.append((step, epoch, kept))
        if len(self._lines) >= self.every:
            self.flush()

    def flush(self) -> None:
        """Read the tensors and write the lines."""
        if not self._lines:
            return
        lines, self._lines = self._lines, []
        _read_tensors(lines)
        written = []
        for step, epoch, values in lines:
            self.last.update({name: value for name, value in values.items() if not isinstance(value, str)})
            written.append(json.dumps({"step": step, "epoch": epoch, **{k: _plain(v) for k, v in values.items()}}))
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n".join(written) + "\n")

    def end_epoch(self) -> None:
        """Forget the values of the epoch; its lines are written."""
        self.flush()
        self.last.clear()

    def secure(self) -> int:
        """Write everything, to the disk itself, and return how many bytes the file has."""
        self.flush()
        if self.path is None or not self.path.exists():
            return 0
        with self.path.open("ab") as file:
            os.fsync(file.fileno())
            return file.tell()

    def cut(self, size: int) -> None:
        """Drop what was written after the checkpoint that the run resumes from.

        Args:
            size: bytes the file had then.
        """
        self._lines.clear()
        if self.path is not None and self.path.exists() and self.path.stat().st_size > size:
            os.truncate(self.path, size)


def _read_tensors(lines: list[tuple[int, int, dict[str, Any]]]) -> None:
    """Replace tensors by numbers, in one copy per device and dtype."""
    found: dict[tuple[torch.device, torch.dtype], list[tuple[dict[str, Any], str]]] = {}
    for _, _, values in lines:
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                found.setdefault((value.device, value.dtype), []).append((values, name))
    for places in found.values():
        numbers = torch.stack([values[name].reshape(()) for values, name in places]).tolist()
        for (values, name), number in zip(places, numbers, strict=True):
            values[name] = number


def _plain(value: Any) -> Any:
    """Return a number as JSON can hold it: NaN and the infinities as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
