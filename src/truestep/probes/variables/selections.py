"""Selections of rows that variables hold: masks and indices with the names of a training, a validation or a test."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.events import Site
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.variables.origins import items_of, last_written, scope_of, stores_of

_PARTS = {
    "train": {"tr", "train", "training", "trn"},
    "validation": {"dev", "va", "val", "valid", "validation"},
    "test": {"te", "test", "testing", "tst"},
}
_NEUTRAL = frozenset({"idx", "idxs", "inds", "index", "indexes", "indices", "ix", "mask", "masks", "rows"})
_OF_ROWS = _NEUTRAL | {"fold", "folds", "part", "parts", "split", "splits"}
_WORD = re.compile(r"[^\W_\d]+")
_LEAST, _MOST = 10, 1 << 20
_MOST_LISTED = 1 << 17
_MOST_ITEMS = 16
_MOST_HELD = 600
_MOST_TOGETHER = 4
_DEEP = 2


class Selection(NamedTuple):
    """A mask, or the numbers of rows."""

    name: str
    """Its name, or that in the function that returns it."""
    part: str
    """Its purpose: "train", "validation" or "test"."""
    also: frozenset[str]
    """The other words of the name."""
    written: str
    """The expression by which the program reads it."""
    value: Any
    made: Site | None
    """The last statement above that writes it."""


def families(scene: Scene, frames: list[FrameType]) -> Iterator[tuple[FrameType, list[Selection]]]:
    """Yield selections that belong together, with a frame that leads to them.

    Selections belong together if they are variables of one function or file, or parts of one dict, tuple or object.
    """
    met: set[int] = set()
    functions = [frame for frame in frames if frame.f_code.co_flags & inspect.CO_OPTIMIZED]
    modules = {id(one.f_globals): one for one in frames if not one.f_code.co_flags & inspect.CO_OPTIMIZED}
    for frame in (*functions, *modules.values()):
        names = variables(frame) if frame in functions else frame.f_globals
        names = dict(list(names.items())[:_MOST_HELD])
        yield frame, [one for one in _named(scene, names, "", frame) if is_current(frame, one.written)]
        for key, value in names.items():
            for inner in _inside(scene, key, value, frame, met, _DEEP):
                if len(inner) > 1 and is_current(frame, key):
                    yield frame, inner


def held_selections(scene: Scene, frames: list[FrameType]) -> Iterator[Any]:
    """Yield all masks and indices that variables of frames hold, and those in their dicts, tuples and objects."""
    for names in (names for frame in frames for names in (variables(frame), frame.f_globals)):
        for value in list(names.values())[:_MOST_HELD]:
            parts = [value]
            if type(value) in (tuple, list) and len(value) <= _MOST_ITEMS:
                parts += value
            else:
                parts += list((value if type(value) is dict else own_dict(value) or {}).values())[:_MOST_ITEMS]
            yield from (one for one in parts if _selects(scene.torch, one))


def is_current(frame: FrameType, name: str) -> bool:
    """Return True unless an earlier round or loop of a frame has left a value in a variable."""
    stores = stores_of(frame.f_code, name)
    line = frame.f_lineno
    above = [one for one in stores if one.lineno <= line]
    if not above:
        return not stores
    return all(first <= line <= last for first, last in _loops(frame) if first <= above[-1].lineno <= last)


def _loops(frame: FrameType) -> Iterator[tuple[int, int]]:
    for node in scope_of(frame.f_code):
        if isinstance(node, ast.For | ast.While | ast.AsyncFor):
            yield node.lineno, node.end_lineno or node.lineno


def _inside(
    scene: Scene, name: str, value: Any, frame: FrameType, met: set[int], depth: int
) -> Iterator[list[Selection]]:
    """Yield the selections in a dict, a tuple or an object, and in its attributes."""
    if id(value) in met or len(met) > _MOST_HELD or name.rpartition(".")[2].startswith("__"):
        return
    if type(value) is dict and len(value) <= _MOST_ITEMS:
        met.add(id(value))
        keyed = {key: item for key, item in value.items() if type(key) is str}
        yield list(_named(scene, keyed, f"{name}[{{!r}}]", frame))
    elif type(value) in (tuple, list) and 1 < len(value) <= _MOST_TOGETHER:  # an argument has its names further out
        yield list(_listed(scene, name, value, frame))
    else:
        held = own_dict(value)
        if not held or issubclass(type(value), scene.torch.nn.Module):
            return
        met.add(id(value))
        held = _stored(held) or held
        held = {key: item for key, item in list(held.items())[:_MOST_HELD] if type(key) is str and key.isidentifier()}
        yield list(_named(scene, held, f"{name}.{{}}", frame))
        for key, item in held.items() if depth else ():
            yield from _inside(scene, f"{name}.{key}", item, frame, met, depth - 1)


def _stored(held: dict[str, Any]) -> dict[str, Any] | None:
    """Return the attributes that an object of PyTorch Geometric keeps in a storage."""
    inner = own_dict(held.get("_store"))
    mapping = inner.get("_mapping") if inner else None
    return mapping if type(mapping) is dict else None


def _named(scene: Scene, names: dict[str, Any], form: str, frame: FrameType) -> Iterator[Selection]:
    for name, value in names.items():
        known = part_of(name)
        if known is not None and _selects(scene.torch, value):
            written = form.format(name) if form else name
            yield Selection(written, *known, written, value, last_written(frame, written))


def _listed(scene: Scene, name: str, values: Any, frame: FrameType) -> Iterator[Selection]:
    """Yield the selections of a tuple, by the names in the statement, or in the function, that makes it."""
    if not all(_selects(scene.torch, value) for value in values):
        return
    for place, (inner, made) in enumerate(items_of(frame, name, len(values))):
        known = part_of(inner)
        if known is not None:
            yield Selection(inner, *known, f"{name}[{place}]", values[place], made)


def part_of(name: str) -> tuple[str, frozenset[str]] | None:
    """Return the part of the data that a name tells, and its other words; None for names that tell more.

    >>> part_of("val_mask"), part_of("trainval_mask"), part_of("test_small_mask")
    (('validation', frozenset({'mask'})), None, None)
    """
    words = set(_WORD.findall(name.lower()))
    parts = [part for part, known in _PARTS.items() if words & known]
    also = frozenset(words - set().union(*_PARTS.values()))
    return (parts[0], also) if len(parts) == 1 and also <= _NEUTRAL else None


def of_rows(one: Selection) -> bool:
    """Return True if the name of a selection, or of the object that holds it, tells that it is of rows."""
    return not _OF_ROWS.isdisjoint(_WORD.findall(f"{one.name} {one.written}".lower()))


def _selects(torch: Any, value: Any) -> bool:
    """Return True for a mask, or for the numbers of rows; reads few values."""
    kind = type(value)
    if kind in (list, range):
        return _LEAST <= len(value) <= _MOST_LISTED and type(value[0]) is type(value[-1]) is int
    if kind is torch.Tensor:
        whole = value.dtype in (torch.bool, torch.int64, torch.int32)
        return value.dim() == 1 and whole and _LEAST <= len(value) <= _MOST and value.is_cpu and has_values(value)
    numpy = kind.__module__ == "numpy" and kind.__name__ == "ndarray"
    return numpy and value.ndim == 1 and value.dtype.kind in "biu" and _LEAST <= len(value) <= _MOST


def places_of(torch: Any, value: Any) -> tuple[Any, int]:
    """Return the sorted rows of a selection, and the length of a mask, 0 for indices; None if it is neither."""
    if type(value) is not torch.Tensor:
        listed = type(value) in (list, range)
        if listed and not all(type(one) is int for one in value):
            return None, 0
        if listed:
            value = torch.tensor(list(value))
        else:
            value = torch.from_numpy(value.astype("bool" if value.dtype.kind == "b" else "int64"))
    value = value.detach()
    if value.dtype is torch.bool:
        return value.nonzero()[:, 0], len(value)
    rows = value.long().unique()
    return (rows, 0) if len(rows) == len(value) and int(rows[0]) >= 0 else (None, 0)
