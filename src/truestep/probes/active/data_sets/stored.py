"""Stored samples that change while they are read: an operation in place that each pass repeats.

Some values of the arrays are compared with those at the look before. A change counts if it is one multiplication and
addition for all values of a sample, and the same one, or its repetition, for all samples that changed. Other changes
count if reads of a data set make them, by random values (`rewritten`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from truestep import source
from truestep.events import Site, StoredCompared
from truestep.probes.active.data_sets.rewritten import (
    changed_by_itself,
    drawn_into,
    is_labelled,
    random_writes,
)
from truestep.probes.active.rows.lookup import Found
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.unread.statements import scope_of
from truestep.probes.variables.arrays import Held, arrays_of, as_tensor, shape_of
from truestep.seams.code.functions import code_of
from truestep.seams.refs import Ref

_ROWS = 64
_COLUMNS = 64
_LEAST_ROWS = 16
_LEAST_CHANGED = 8
_MOST_ARRAYS = 16
_AFFINE = 0.9
"""Least share of the changed rows that are a multiple of the values before, plus a constant."""
_EXACT = 1e-3
_WHOLE = 0.05
"""Largest distance of a number of repetitions from a whole number."""
_SAME = 1e-5
_REPEATED = 0.5
_MOVED = 1e-3
"""Least change of a value, as a share of the largest one of its row, that counts without one operation."""
_DEEP = 4


@dataclass(slots=True)
class _Array:
    """Some values of an array at the latest look."""

    ref: Ref
    version: Any
    values: Any
    times: Any
    """Number of changes of each row so far."""
    step: int
    factor: float = 1.0
    offset: float = 0.0
    """The change: values are multiplied by the factor, then the offset is added."""
    moved: Any = None
    """Number of looks at which each row was changed."""
    other: bool = False
    """True if rows were changed by something else than one operation."""
    settled: bool = False


class StoredSamples:
    """Emits `StoredCompared`.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._arrays: dict[int, _Array] = {}

    def look(self, found: list[Found], data: Any, frame: FrameType, site: Site | None) -> None:
        """Compare arrays of samples with their values at the look before.

        Args:
            found: tables of variables, with rows of a batch.
            data: data set of the latest batch; None without one.
            frame: torch's frame of the call of a model.
            site: line of the call.
        """
        with self._aside(), self._scene.sampling.timed(None):
            rows = _rows_of(data)
            kept = [one for one in arrays_of(self._scene, data) if _rows_of(one.value) == rows]
            inside = {id(one.value) for one in kept}
            tables = [
                one.table for one in found if one.table.rows > len(one.keys) and id(one.table.ref()) not in inside
            ]
            kept += [Held(table.name, table.owner, table.ref()) for table in tables]
            for one in kept:
                self._look_at(one, data if id(one.value) in inside else None, frame, site)

    def _look_at(self, one: Held, data: Any, frame: FrameType, site: Site | None) -> None:
        step, shape = self._scene.sampling.step, shape_of(self._scene.torch, one.value)
        if len(shape) < 2 or shape[0] < _LEAST_ROWS:  # or the table has gone
            return
        floating = "float" in str(one.value.dtype)
        if not floating and "int" not in str(one.value.dtype):
            return
        array = self._arrays.get(id(one.value))
        if array is None or array.ref() is not one.value:
            if len(self._arrays) < _MOST_ARRAYS:
                self._begin(one.value, step, other=not floating)
        elif not array.settled and array.step != step:
            self._compare(one, array, data, frame, site)
            array.step = step

    def _begin(self, value: Any, step: int, *, other: bool) -> None:
        values = self._values(value)
        if values is not None and not getattr(value, "requires_grad", False):
            times = self._scene.torch.zeros(len(values), dtype=self._scene.torch.float64)
            self._arrays[id(value)] = _Array(
                Ref(value), _version(value), values, times, step, moved=times.clone(), other=other
            )

    def _values(self, value: Any) -> Any:
        torch = self._scene.torch
        if type(value) is torch.Tensor:
            table = as_tensor(self._scene, value)
            if table is None:
                return None
        rows = len(value)
        some = value[:: max(1, rows // _ROWS)][:_ROWS]
        some = as_tensor(self._scene, some)
        if some is None:
            return None
        flat = some.reshape(len(some), -1)
        return flat[:, :: max(1, flat.shape[1] // _COLUMNS)][:, :_COLUMNS].double().clone()

    def _compare(self, one: Held, array: _Array, data: Any, frame: FrameType, site: Site | None) -> None:
        version = _version(one.value)
        if version is None or version != array.version:
            now = self._values(one.value)
            if now is None or now.shape != array.values.shape or not bool(now.isfinite().all()):
                array.settled = True
                return
            size = _MOVED * array.values.abs().amax(1, keepdim=True)
            array.moved += ((now - array.values).abs() > size).any(1)
            times = None if array.other else self._times(array, now)
            if times is None:
                array.other, array.values, array.version = True, now, version
                self._other(one, array, data, frame, site)
                return
            array.values, array.version = now, version
            array.times += times
        if array.other:
            return
        changed = float((array.times >= 2).double().mean()) >= _REPEATED
        if changed or not bool(array.times.any()):
            array.settled = changed
            self._scene.tell(
                StoredCompared,
                table=one.name,
                rows=len(one.value),
                times=round(float(array.times.median())) if changed else 0,
                factor=float(f"{array.factor:.4g}"),
                offset=float(f"{array.offset:.4g}"),
                loader=self._scene.loader if data is not None else None,
                site=site,
                made=self._written_at(one.value, data, self._scene.sites.users(frame)) if changed else None,
            )

    def _other(self, one: Held, array: _Array, data: Any, frame: FrameType, site: Site | None) -> None:
        """Handle rows that were changed by something else than one operation: by noise, or on purpose."""
        if float((array.moved >= 2).double().mean()) < _REPEATED:
            return
        array.settled = True
        if data is None:
            made = self._drawn_at(one.value, self._scene.sites.users(frame))
        else:
            codes = [code for code in _codes(data) if not self._scene.sites.is_installed(code.co_filename)]
            made = drawn_into(codes)
            if made is not None and not changed_by_itself(data, self._scene):
                return
        if made is not None:
            self._scene.tell(
                StoredCompared,
                table=one.name,
                rows=len(one.value),
                times=round(float(array.moved.median())),
                random=True,
                loader=self._scene.loader if data is not None else None,
                site=site,
                made=made,
            )

    def _times(self, array: _Array, now: Any) -> Any:
        """Return how often each row was changed since the look before; None for a change of another kind."""
        torch, before = self._scene.torch, array.values
        moved = (now != before).any(1)
        times = torch.zeros(len(now), dtype=torch.float64)
        least, most = before.argmin(1, keepdim=True), before.argmax(1, keepdim=True)
        spread = (before.gather(1, most) - before.gather(1, least))[:, 0]
        known = moved & (spread > 0)
        if not bool(moved.any()):
            return times
        if int(known.sum()) < _LEAST_CHANGED and not bool(array.times.any()):
            return times
        factor = (now.gather(1, most) - now.gather(1, least))[known, 0] / spread[known]
        offset = now.gather(1, least)[known, 0] - factor * before.gather(1, least)[known, 0]
        off = (factor[:, None] * before[known] + offset[:, None] - now[known]).abs().amax(1)
        size = now[known].abs().amax(1) + (factor * before[known].abs().amax(1))
        if float((off <= _EXACT * size).double().mean()) < _AFFINE or bool((factor <= 0).any()):
            return None
        repeated = self._repeated(array, factor, offset)
        if repeated is None:
            return None
        times[known] = repeated
        times[moved & ~known] = float(repeated.median())
        return times

    def _repeated(self, array: _Array, factor: Any, offset: Any) -> Any:
        """Return how often the change of the array was made to get each factor and offset; None if it was not."""
        if array.factor == 1.0 and array.offset == 0.0:
            at = int(factor.log().abs().argmin()) if bool((factor.log().abs() > _SAME).all()) else None
            at = int(offset.abs().argmin()) if at is None else at
            array.factor, array.offset = float(factor[at]), float(offset[at])
        if abs(math.log(array.factor)) > _SAME:
            times = factor.log() / math.log(array.factor)
            fixed = array.offset / (1 - array.factor)
            expected = fixed * (1 - factor)
        elif array.offset:
            times = offset / array.offset
            expected = offset
        else:
            return None
        whole = times.round().clamp_min(1)
        near = ((times - whole).abs() <= _WHOLE) & ((offset - expected).abs() <= 0.01 * offset.abs() + 1e-6)
        return whole if float(near.double().mean()) >= _AFFINE else None

    # --- the line that writes ----------------------------------------------------------------------------------

    def _written_at(self, value: Any, data: Any, frames: list[FrameType]) -> Site | None:
        """Return the operation in place: in the code of a data set, else one on a variable with a part of an array."""
        for code in _codes(data):
            found = next(iter(_writes(code)), None)
            if found is not None and not self._scene.sites.is_installed(code.co_filename):
                return found[1]
        memory = self._memory(value)
        for frame in frames:
            held = variables(frame) | ({} if frame.f_code.co_flags & 1 else frame.f_globals)
            for name, place in _writes(frame.f_code):
                if memory is not None and self._memory(held.get(name)) == memory:
                    return place
        return None

    def _drawn_at(self, value: Any, frames: list[FrameType]) -> Site | None:
        """Return the statement that changes a variable with a part of an array by random values."""
        memory = self._memory(value)
        for frame in frames if memory is not None else ():
            held = variables(frame) | ({} if frame.f_code.co_flags & 1 else frame.f_globals)
            scope = scope_of(frame.f_code)
            if scope is None:
                continue
            for name, place in random_writes(frame.f_code, scope):
                part: Any = held.get(name)
                if self._memory(part) == memory and len(part) < len(value) and is_labelled(name, scope):
                    return place
        return None

    def _memory(self, value: Any) -> int | None:
        plain = type(value) is self._scene.torch.Tensor and str(value.layout) == "torch.strided"
        return int(value.untyped_storage().data_ptr()) if plain else None


def _rows_of(value: Any) -> int:
    """Return the number of rows of an array, or of the samples of a data set, also below a subset; else 0."""
    for _ in range(_DEEP):
        held = getattr(value, "__dict__", {})
        if "indices" not in held or "dataset" not in held:
            break
        value = held["dataset"]
    try:
        return len(value)
    except Exception:  # of the program
        return 0


def _version(value: Any) -> Any:
    """Return the version of a tensor, which each operation in place counts; None for arrays of NumPy."""
    known = hasattr(value, "is_inference") and not value.is_inference()
    return int(value._version) if known else None


def _codes(data: Any) -> Iterator[CodeType]:
    """Yield the code that makes the samples of a data set: its methods, and functions that it holds."""
    for _ in range(_DEEP):
        held = getattr(data, "__dict__", {})
        methods = [vars(type(data)).get(name) for name in ("__getitem__", "__getitems__")]
        others = [one for one in vars(type(data)).values() if one not in methods]
        parts = [each for one in held.values() for each in (one, *_inside(one))]
        for one in (*methods, *parts, *others):
            made = one.__func__ if isinstance(one, MethodType) else one
            if not isinstance(made, FunctionType | type):
                made = vars(type(made)).get("__call__", made)  # a transform
            if isinstance(made, FunctionType) and made.__name__ != "__init__":
                yield code_of(made)
        data = held.get("dataset")


def _inside(value: Any) -> list[Any]:
    """Return the parts of a transform that is composed of others."""
    parts = getattr(value, "__dict__", {}).get("transforms", value)
    return [one for one in parts if callable(one)] if type(parts) in (list, tuple) and len(parts) <= _ROWS else []


def _writes(code: CodeType) -> Iterator[tuple[str, Site]]:
    """Yield the variables that a function, or a file, changes in place, with the places."""
    scope = scope_of(code)
    if scope is None:
        return
    for node in source.walk(scope):
        target: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            target = node.func.value if name.endswith("_") and not name.endswith("__") else None
        while isinstance(target, ast.Subscript | ast.Attribute | ast.Call):
            target = target.func if isinstance(target, ast.Call) else target.value
        if isinstance(target, ast.Name):
            places = (getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))
            yield target.id, Site(code.co_filename, *places)
