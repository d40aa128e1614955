"""Tables that variables of the program hold (tensors, NumPy arrays, lists of samples), and rows found in them by value.

A row is found by a hash of some of its columns, an integer that does not depend on the order of operations. Tables of
few different rows, such as labels, do not show which of their rows were read.
"""

from __future__ import annotations

import inspect
import random
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref

_PLAIN = (int, float, str, bytes, type(None))
_DEEP = 2
_MOST_VALUES = 600
_MOST_ITEMS = 16
_MOST_CELLS = 1 << 22
_MOST_SAMPLES = 5_000
_LEAST_SAMPLES = 32
_COLUMNS = 32
_READ = 16
"""Number of elements of an array that show whether it was changed."""
_DISTINCT = 0.9
"""Least share of different rows in a table."""
_LEAST_ROWS = 8
_LEAST_MEASURED = 4
_VARIED = 0.5
"""Least share of different values in a column of measured numbers: rows of others can be equal by chance."""
_MOST_SEEN = 1 << 16
_draw = random.Random(20)
_WEIGHTS = [_draw.getrandbits(62) | 1 for _ in range(_COLUMNS)]


class Held(NamedTuple):
    """An array, and the place where the program holds it."""

    name: str
    owner: int
    """Id of the namespace or object that holds it: arrays of one owner may have a row for each sample in common."""
    value: Any


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
        self._seen: dict[tuple[int, tuple[int, ...]], set[int]] = {}
        """Model and shape of a row to the keys of the rows that its training read in sampled steps."""

    def met(self, value: Any, keys: Any) -> None:
        """Record an array whose rows are not all different; one with other rows than before is a memory."""
        self._tables = {key: one for key, one in self._tables.items() if one[0]() is not None}
        known = self._tables.get(id(value))
        if known is not None:
            self._tables[id(value)] = known[0], None
        elif len(self._tables) < _MOST_ITEMS and not differ(self._scene.torch, keys[keys != keys.mode().values]):
            self._tables[id(value)] = Ref(value), keys

    def trained(self, model: int, value: Any) -> None:
        """Record the rows of a batch that are all in such a table."""
        torch = self._scene.torch
        tables = [keys for _, keys in self._tables.values() if keys is not None]
        keys = self._keys(value) if tables else None
        if keys is not None and any(bool(torch.isin(keys, table).all()) for table in tables):
            seen = self._seen.setdefault((model, shape_of(torch, value)[1:]), set())
            if len(seen) < _MOST_SEEN:
                seen.update(keys.tolist())

    def forget(self) -> None:
        """Forget the rows of a training that has ended."""
        self._seen.clear()

    def evaluated(self, model: int, frames: list[FrameType], value: Any) -> dict[str, Any]:
        """Return the name of an array that a model is evaluated on, and the number of its rows that were trained on.

        Nothing for arrays without a name, and without rows of the training that were recorded.
        """
        seen = self._seen.get((model, shape_of(self._scene.torch, value)[1:]))
        keys = self._keys(value) if seen else None
        name = next(named(self._scene, frames, value), "") if keys is not None else ""
        if seen is None or keys is None or not name:
            return {}
        hits = sum(key in seen for key in keys.tolist())
        return {"table": name, "hits": hits, "inside": hits, "rows": len(seen), "seen": len(seen)}

    def _keys(self, value: Any) -> Any:
        """Return the keys of rows with several columns of measured numbers; None for others."""
        shape, table = shape_of(self._scene.torch, value), as_tensor(self._scene, value)
        if len(shape) < 2 or shape[0] < _LEAST_ROWS or table is None or table.dtype not in self._measured():
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
    if len(table) * min(width, _COLUMNS) > _MOST_CELLS:
        return None
    some = (table if window else table.reshape(len(table), -1))[:, ::step][:, :_COLUMNS]
    if some.is_floating_point():
        some = some.float().contiguous().view(torch.int32)
    some = some.long()
    weights = torch.tensor(_WEIGHTS[: some.shape[1]])
    return ((some ^ (some >> 15)) * weights).sum(1)


def as_tensor(scene: Scene, value: Any) -> Any:
    """Return a plain tensor with the values of an array; None for another object."""
    torch = scene.torch
    if type(value) is torch.Tensor:
        plain = value.is_cpu and has_values(value) and not value.is_complex() and not value.is_quantized
        return value.detach() if plain else None
    if type(value).__module__ == "numpy" and type(value).__name__ in ("ndarray", "memmap"):
        if value.dtype.kind not in "biuf" or value.size > 8 * _MOST_CELLS:
            return None
        copy = value.astype("float32" if value.dtype.kind == "f" else "int64")  # a copy: a view may be read-only
        return torch.from_numpy(copy)
    return None


def version_of(value: Any) -> Any:
    """Return the version of a tensor, else some elements of an array: they change with its values."""
    version = getattr(value, "_version", None) if not getattr(value, "is_inference", bool)() else None
    if version is not None:
        return version
    if hasattr(value, "is_inference"):
        return None
    flat = value.reshape(-1)
    return value.shape, flat[:: max(1, len(flat) // _READ)][:_READ].tobytes()


def shape_of(torch: Any, value: Any) -> tuple[int, ...]:
    """Return the shape of an array with rows, () for any other object; reads no values."""
    if type(value) is torch.Tensor or (type(value).__module__ == "numpy" and hasattr(value, "shape")):
        return tuple(int(size) for size in value.shape)
    return ()


def arrays(scene: Scene, frames: list[FrameType]) -> list[Held]:
    """Return the arrays that the variables of frames hold, also in objects of the program's classes and in tuples."""
    seen: set[int] = set()
    found: list[Held] = []
    for frame in frames:
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            found += _inside(scene, variables(frame), "", id(frame), _DEEP, seen)
    for names in {id(frame.f_globals): frame.f_globals for frame in frames}.values():
        found += _inside(scene, names, "", id(names), _DEEP, seen)
    return found


def named(scene: Scene, frames: list[FrameType], value: Any) -> Iterator[str]:
    """Yield the names of an array in the variables of frames: in modules first, and in the outermost frame first."""
    modules = {id(frame.f_globals): frame.f_globals for frame in reversed(frames)}
    functions = [frame for frame in reversed(frames) if frame.f_code.co_flags & inspect.CO_OPTIMIZED]
    spaces: list[dict[str, Any]] = [*modules.values(), *map(variables, functions)]
    for names in spaces:
        for one in _inside(scene, names, "", id(names), _DEEP, set()):
            if one.value is value:
                yield one.name


def arrays_of(scene: Scene, data: Any) -> list[Held]:
    """Return the arrays that a data set holds, also one below a subset."""
    known = data is not None and _is_own(scene, data)
    return list(_inside(scene, _attributes(data), "dataset.", id(data), _DEEP, set())) if known else []


def _inside(scene: Scene, names: dict[str, Any], before: str, owner: int, depth: int, seen: set[int]) -> Iterator[Held]:
    torch = scene.torch
    for name, value in list(names.items()):
        if len(seen) > _MOST_VALUES:
            return
        if name.startswith("__") or id(value) in seen or issubclass(type(value), _PLAIN):
            continue
        shown = f"{before}{name}"
        if shape_of(torch, value):
            seen.add(id(value))
            yield Held(shown, owner, value)
        elif type(value) in (tuple, list, deque) and value:
            seen.add(id(value))
            if len(value) >= _LEAST_SAMPLES:
                yield from _columns(torch, value, shown)
            elif len(value) <= _MOST_ITEMS:
                for place, item in enumerate(value):
                    if shape_of(torch, item):
                        yield Held(f"{shown}[{place}]", id(value), item)
        elif type(value) is dict and len(value) <= _MOST_ITEMS:
            seen.add(id(value))
            for key, item in value.items():
                if shape_of(torch, item):
                    yield Held(f"{shown}[{key!r}]", id(value), item)
        elif depth and _is_own(scene, value):
            seen.add(id(value))
            yield from _inside(scene, _attributes(value), f"{shown}.", id(value), depth - 1, seen)


def _is_own(scene: Scene, value: Any) -> bool:
    """Return True for an instance of a class of the program with attributes, except for modules."""
    kind = type(value)
    if issubclass(kind, (type, scene.torch.nn.Module)) or not _attributes(value):
        return False
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    data = kind.__module__ == "torch.utils.data.dataset"
    return data or (path is not None and not scene.sites.is_installed(path))


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an instance, without running code of its class."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _columns(torch: Any, samples: Any, name: str) -> Iterator[Held]:
    """Yield each part of the samples of a list as an array, if all have the same shape."""
    first = samples[0]
    if len(samples) > _MOST_SAMPLES or not isinstance(first, tuple | list):  # named tuples, too
        return
    for place, part in enumerate(first[:_MOST_ITEMS]):
        shape = shape_of(torch, part)
        if not shape:
            continue
        try:
            parts = [sample[place] for sample in samples]
            if any(type(other) is not type(part) or shape_of(torch, other) != shape for other in parts):
                continue
            stacked = torch.stack(parts) if type(part) is torch.Tensor else sys.modules["numpy"].stack(parts)
        except (IndexError, TypeError, ValueError, RuntimeError):
            continue
        yield Held(f"{name}, part {place + 1}" if len(first) > 1 else name, id(samples), stacked)
