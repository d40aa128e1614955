"""Find weights with equal rows (a single row counts) when a parameter is new, and follow them at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import RowsEqual
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held
from truestep.seams.divided import is_divided
from truestep.seams.fsdp import is_flattened, is_freed

_MOST = 4000
_COLUMNS = 8
_ROWS = 256
_EQUAL = 1e-6
_STILL = 1e-3
"""Relative difference of initially equal rows that rounding explains: the order of sums differs between rows."""
_MOVED = 1e-4


class Rows:
    """Follows the weights that had equal rows when first examined, until a row differs."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._looked: set[int] = set()
        self._first: dict[int, list[float]] = {}
        """Beginning of the first row when first examined, by number of the weight."""
        self._constant: list[int] = []

    def meet(self) -> None:
        """Examine weights before the first step on them, which makes equal numbers different."""
        for held in list(self._scene.ledger.by_id.values()):
            weight = None if held.number in self._looked else self._weight(held)
            if weight is not None:
                self._looked.add(held.number)
                row = _common_row(weight, _EQUAL)
                if row is not None:
                    self._first[held.number] = row
                    if weight.numel() > 1 and any(row) and bool((weight == weight.flatten()[0]).all()):
                        self._constant.append(held.number)

    def look(self) -> None:
        """Emit the weights that still have equal rows, if there were any."""
        self.meet()
        before = set(self._first)
        moved: list[int] = []
        zero: list[int] = []
        for held in list(self._scene.ledger.by_id.values()):
            weight = self._weight(held) if held.number in self._first else None
            if weight is None:
                continue
            row = _common_row(weight, _STILL)
            if row is None:
                self._first.pop(held.number, None)
            elif not any(row) and not bool(weight.count_nonzero()):
                zero.append(held.number)
            elif weight.shape[0] > 1 and _was_trained(self._first[held.number], row):
                moved.append(held.number)
        if before or self._constant:
            found = tuple(moved), tuple(zero), tuple(self._constant)
            steps = self._scene.sampling.step + 1
            self._scene.emit(RowsEqual(moved=found[0], zero=found[1], constant=found[2], steps=steps))

    def _weight(self, held: Held) -> Any:
        """Return the values of a trainable weight; None for other parameters."""
        parameter = held.ref()
        if parameter is None or len(self._looked) >= _MOST or not parameter.requires_grad or is_lazy(parameter):
            return None
        if parameter.dim() < 2 or not parameter.numel() or not has_values(parameter):
            return None
        if is_divided(parameter) or is_flattened(parameter) or is_freed(parameter):
            return None
        return parameter.detach() if parameter.is_floating_point() else None


def _common_row(weight: Any, apart: float) -> list[float] | None:
    """Return the beginning of the common row; None if rows differ. Usually two rows decide.

    Args:
        apart: largest difference, relative to the largest number in the row.
    """
    two: list[list[float]] = weight[:2].reshape(min(2, weight.shape[0]), -1)[:, :_COLUMNS].tolist()
    largest = max(map(abs, two[0]))
    if any(abs(a - b) > apart * largest for a, b in zip(two[0], two[-1], strict=True)):
        return None
    rows = weight[:_ROWS].reshape(min(_ROWS, weight.shape[0]), -1)
    difference, largest = float((rows - rows[:1]).abs().max()), float(rows[0].abs().max())
    return two[0] if difference <= apart * largest else None


def _was_trained(first: list[float], row: list[float]) -> bool:
    """Return True if a row has changed by more than a factor, which weight decay explains."""
    largest = max(map(abs, row))
    factor = row[0] / first[0] if first[0] else 0.0
    return any(abs(now - factor * then) > _MOVED * largest for then, now in zip(first, row, strict=True))
