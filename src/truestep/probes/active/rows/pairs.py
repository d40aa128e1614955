"""Arrays that go together in one call or loss: are they taken from the same rows of their tables?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from truestep.probes.active.rows.orders import codes_of, compare
from truestep.probes.active.rows.tables import differ
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, as_tensor, shape_of

if TYPE_CHECKING:
    from truestep.probes.active.rows.lookup import Found

_MOST_COMPARED = 1 << 22
_LOG_CHANCE = -9.0
"""Logarithm of the largest probability at which labels are those of other rows by chance, in one of several steps."""
_MOST_INDICES = 32


class Pairs:
    """Compares arrays with the rows of a batch that was found in tables.

    Args:
        scene: the scene.
        held: arrays that variables hold.
        inputs: the tables of the batch.
    """

    def __init__(self, scene: Scene, held: list[Held], inputs: list[Found]) -> None:
        self._scene = scene
        self._held = held
        self._inputs = [one for one in inputs if not one.window]

    def arguments(self, given: tuple[Any, ...], batch: Any) -> list[dict[str, Any]]:
        """Return the pairs of the batch with the other arguments of its call."""
        found = [self.target(value) for value in given if value is not batch]
        return [pair for pair in found if pair is not None]

    def target(self, value: Any) -> dict[str, Any] | None:
        """Return the fields of `RowsPaired` for an array with as many rows as the batch; None if from no table."""
        torch, other = self._scene.torch, None
        if not self._inputs or not shape_of(torch, value) or type(value) is not torch.Tensor or value.requires_grad:
            return None
        if shape_of(torch, value)[0] != len(self._inputs[0].places):
            return None
        given = as_tensor(self._scene, _rows_of(value))
        if given is None:
            return None
        given = given.reshape(len(given), -1).double()
        for one in self._inputs:
            for held in self._beside(one, given):
                column = None if held.value is value else as_tensor(self._scene, held.value)
                if column is None or (not column.is_floating_point() and _is_index(torch, column)):
                    continue
                column = column.reshape(len(column), -1).double()
                fields = {"table": one.name, "other": held.name, "rows": one.table.rows}
                column = _rounded(column, value)
                if bool((column[one.places] == given).all()):
                    return {**fields, "equal": True}
                if other is None and held.value is not one.table.ref():
                    order = compare(torch, column[one.places], given)
                    if order is not None and order.equal:
                        return {**fields, "equal": True}
                    if order is not None and order.known:
                        other = {**fields, "equal": False, "chance": round(order.chance, 1)}
                    elif self._is_from(column, given, one.places):
                        other = {**fields, "equal": False}
        return other

    def _beside(self, one: Found, given: Any) -> list[Held]:
        """Return the arrays with a row for each row of a table, next to it in the program, and of a form."""
        torch, table = self._scene.torch, one.table
        found = []
        for held in self._held:
            shape = shape_of(torch, held.value)
            if shape[:1] == (table.rows,) and held.owner == table.owner and math.prod(shape[1:]) == given.shape[1]:
                found.append(held)
        return found

    def _is_from(self, column: Any, given: Any, places: Any) -> bool:
        """Return True if the values of other rows of a column are given, and not by chance."""
        torch, rows = self._scene.torch, len(given)
        if bool((given[1:] >= given[:-1]).all()) or bool((column[1:] >= column[:-1]).all()):
            return False  # numbers of samples, made for each batch
        own, other = codes_of(torch, column, given)  # whole rows: a turned image has the numbers of its row as well
        among = torch.unique(other)
        if len(among) < 2 or not bool(torch.isin(among, own).all()):
            return False
        share = float((torch.bincount(own).double() / len(column)).square().sum())
        if rows * math.log(share) + math.log(len(column)) > _LOG_CHANCE:
            return False
        if differ(torch, own):
            return 2 * len(among) > rows
        if len(column) * rows * column.shape[1] <= _MOST_COMPARED:
            slices = column.unfold(0, rows, 1).transpose(1, 2)
            if bool((slices == given).flatten(1).all(1).any()):
                return True
        indices = [one for one in self._indices(rows, len(column), places) if not _are(one, given)]
        return any(bool((column[index] == given).all()) for index in indices)

    def _indices(self, rows: int, most: int, places: Any) -> list[Any]:
        """Return the arrays that can be indices of rows, from at least so many numbers."""
        torch = self._scene.torch
        found: list[Any] = []
        for held in self._held:
            shape = shape_of(torch, held.value)
            if len(shape) != 1 or shape[0] < rows or len(found) == _MOST_INDICES:
                continue
            index = as_tensor(self._scene, held.value)
            if index is None or index.is_floating_point() or index.dtype is torch.bool:
                continue
            index = index[:rows].long()
            if int(index.min()) >= 0 and int(index.max()) < most and not bool((index == places).all()):
                found.append(index)
        return found


def _rows_of(value: Any) -> Any:
    """Return the whole rows of the table that a tensor is some columns of, such as `y` for ``y[:, 0]``; else itself."""
    base, rows = value._base, len(value)
    if base is None or base.requires_grad or not base.dim() > 1 or not base.is_contiguous():
        return value
    step = base.stride(0)
    first, place = divmod(value.storage_offset() - base.storage_offset(), step) if step else (0, 0)
    inside = place + sum((size - 1) * stride for size, stride in zip(value.shape[1:], value.stride()[1:], strict=True))
    if value.stride(0) != step or inside >= step or not 0 <= first <= len(base) - rows:
        return value
    return base[first : first + rows]


def _are(index: Any, given: Any) -> bool:
    """Return True for the numbers of a batch itself: the first rows of a column can be 0, 1, 2, ..., as its classes."""
    return given.shape[1] == 1 and bool((index == given[:, 0]).all())


def _rounded(column: Any, value: Any) -> Any:
    """Return values in the precision of another array."""
    return column.to(value.dtype).double()


def _is_index(torch: Any, column: Any) -> bool:
    """Return True for whole numbers that are all different: places of rows, not values of a target."""
    return column.numel() == len(column) and len(torch.unique(column)) == len(column)
