"""Tables of rows: arrays that variables of the program hold, and rows found in them by value.

A row is found by a hash of some of its columns, an integer that does not depend on the order of operations. Tables of
few different rows, such as labels, do not show which of their rows were read.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import MOST_CELLS, Held, arrays, as_tensor, named, shape_of
from truestep.seams.refs import Ref

_MOST_TABLES = 16
_COLUMNS = 32
_DISTINCT = 0.9
"""Least share of different rows in a table."""
_LEAST_ROWS = 8
_LEAST_MEASURED = 4
_VARIED = 0.5
"""Least share of different values in a column of measured numbers: rows of others can be equal by chance."""
_MOST_SEEN = 1 << 16
_draw = random.Random(20)
_WEIGHTS = [_draw.getrandbits(62) | 1 for _ in range(_COLUMNS)]


class Table:
    """An array of different rows."""

    __slots__ = ("_order", "_sorted", "keys", "name", "owner", "ref", "rows")

    def __init__(self, torch: Any, held: Held, keys: Any) -> None:
        self.name, self.owner, self.ref = held.name, held.owner, Ref(held.value)
        self.keys = keys
        self.rows = len(keys)
        self._sorted, self._order = torch.sort(keys)

    def places(self, torch: Any, keys: Any) -> tuple[Any, Any]:
        """Return for each key the place of its row, and whether there is exactly one."""
        at = torch.searchsorted(self._sorted, keys).clamp_(max=self.rows - 1)
        following = (at + 1).clamp_(max=self.rows - 1)
        found = self._sorted[at] == keys
        return self._order[at], found & ((self._sorted[following] != keys) | (following == at))

    def has(self, torch: Any, keys: Any) -> Any:
        """Return for each key whether the table has its row."""
        at = torch.searchsorted(self._sorted, keys).clamp_(max=self.rows - 1)
        return self._sorted[at] == keys


class CopiedRows:
    """Compares the rows of evaluations with those of a training table that has many of them several times, by value.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._tables: dict[int, tuple[Ref, Any]] = {}
        """Array, by its id, with many rows several times, to the keys of its rows; None for one that the run writes."""
        self._seen: dict[tuple[int, tuple[int, ...]], tuple[set[int], set[int]]] = {}
        """Model and shape of a row to the arrays with all rows that its training read in sampled steps, and the keys of
        these rows."""

    def met(self, value: Any, keys: Any) -> None:
        """Record an array with rows that are not all different; one with other rows than before is a memory."""
        self._tables = {key: one for key, one in self._tables.items() if one[0]() is not None}
        known = self._tables.get(id(value))
        if known is not None:
            self._tables[id(value)] = known[0], None
        elif len(self._tables) < _MOST_TABLES and not differ(self._scene.torch, keys[keys != keys.mode().values]):
            self._tables[id(value)] = Ref(value), keys

    def trained(self, model: int, value: Any, tables: Sequence[Table] = ()) -> None:
        """Record the rows of a batch that are all in such an array.

        Args:
            model: number of the model.
            value: the batch.
            tables: the tables with all its rows.
        """
        torch = self._scene.torch
        copied = {id(keys): keys for _, keys in self._tables.values() if keys is not None}
        keys = self._keys(value, tables) if copied else None
        if keys is None or not len(keys):
            return
        found = {number for number, one in copied.items() if bool(torch.isin(keys, one).all())}
        of_model = model, shape_of(torch, value)[1:]
        before, seen = self._seen.get(of_model, (found, set()))
        if found and before.isdisjoint(found):  # another array, as of the next fold
            before, seen = found, set()
        if found:
            self._seen[of_model] = before & found, seen
            if len(seen) < _MOST_SEEN:
                seen.update(keys.tolist())

    def forget(self) -> None:
        """Forget the rows of a training that has ended."""
        self._seen.clear()

    def evaluated(
        self, model: int, frames: list[FrameType], value: Any, tables: Sequence[Table] = ()
    ) -> dict[str, Any]:
        """Return the name of an array that a model is evaluated on, and the number of its rows that were trained on.

        Nothing for arrays without a name, and without rows of the training that were recorded.

        Args:
            model: number of the model.
            frames: the user's frames.
            value: the array.
            tables: the tables with all its rows.
        """
        _, seen = self._seen.get((model, shape_of(self._scene.torch, value)[1:]), (None, None))
        keys = self._keys(value, tables) if seen else None
        name = next(self._names(frames, value, keys), "") if keys is not None else ""
        if seen is None or keys is None or not name:
            return {}
        hit = [key for key in keys.tolist() if key in seen]
        return {"table": name, "hits": len(hit), "inside": len(set(hit)), "rows": len(seen), "seen": len(seen)}

    def _names(self, frames: list[FrameType], value: Any, keys: Any) -> Iterator[str]:
        """Yield the names of an array, then those of arrays with the same rows that it may be a copy of."""
        yield from named(self._scene, frames, value)
        torch, shape = self._scene.torch, shape_of(self._scene.torch, value)
        for one in arrays(self._scene, frames):
            if shape_of(torch, one.value) == shape and (other := keys_of(self._scene, one.value)) is not None:
                if torch.equal(other, keys):
                    yield one.name

    def _keys(self, value: Any, tables: Sequence[Table]) -> Any:
        """Return the keys of rows that are not equal by chance; None if that is not known.

        These are the rows that a larger table has once, else all rows with several columns of measured numbers.
        """
        shape, table = shape_of(self._scene.torch, value), as_tensor(self._scene, value)
        larger = [one for one in tables if shape and one.rows > shape[0]]
        if larger and len(shape) >= 2 and shape[0] >= _LEAST_ROWS and table is not None and table.is_floating_point():
            keys = keys_of(self._scene, value)
            once = larger[0].places(self._scene.torch, keys)[1]
            return keys[once]
        if larger or len(shape) < 2 or shape[0] < _LEAST_ROWS or table is None or table.dtype not in self._measured():
            return None
        columns = table.reshape(len(table), -1)[:, : 8 * _LEAST_MEASURED].T
        varied = sum(len(self._scene.torch.unique(column)) >= _VARIED * len(table) for column in columns)
        return keys_of(self._scene, value) if varied >= _LEAST_MEASURED else None

    def _measured(self) -> tuple[Any, ...]:
        torch = self._scene.torch
        return torch.float32, torch.float64, torch.float16, torch.bfloat16


def differ(torch: Any, keys: Any) -> bool:
    """Return True if nearly all rows are different."""
    return len(torch.unique(keys)) >= _DISTINCT * len(keys)


def keys_of(scene: Scene, value: Any, *, window: int = 0) -> Any:
    """Return a key for each row of an array, or for each window of so many values; None for another object."""
    torch = scene.torch
    table = as_tensor(scene, value)
    if table is None or not table.dim() or not table.numel():
        return None
    if window:
        if table.dim() != 1 or len(table) < window:
            return None
        table = table.unfold(0, window, 1)
    width = table[0].numel()
    step = max(1, width // _COLUMNS)
    if len(table) * min(width, _COLUMNS) > MOST_CELLS:
        return None
    some = (table if window else table.reshape(len(table), -1))[:, ::step][:, :_COLUMNS]
    if some.is_floating_point():
        some = some.float().contiguous().view(torch.int32)
    some = some.long()
    weights = torch.tensor(_WEIGHTS[: some.shape[1]])
    return ((some ^ (some >> 15)) * weights).sum(1)
