"""Arrays that variables of the program hold: tensors, NumPy arrays, and the parts of the samples of lists."""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any, NamedTuple

from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values

_PLAIN = (int, float, str, bytes, type(None))
_DEEP = 2
_MOST_VALUES = 600
_MOST_ITEMS = 16
MOST_CELLS = 1 << 22
"""Most numbers of an array that are read."""
_MOST_SAMPLES = 5_000
_LEAST_SAMPLES = 32
_READ = 16
"""Number of elements of an array that show whether it was changed."""


class Held(NamedTuple):
    """An array, and the place where the program holds it."""

    name: str
    owner: int
    """Id of the namespace or object that holds it: arrays of one owner may have a row for each sample in common."""
    value: Any


def as_tensor(scene: Scene, value: Any) -> Any:
    """Return a plain tensor with the values of an array; None for another object."""
    torch = scene.torch
    if type(value) is torch.Tensor:
        plain = value.is_cpu and has_values(value) and not value.is_complex() and not value.is_quantized
        return value.detach() if plain else None
    if type(value).__module__ == "numpy" and type(value).__name__ in ("ndarray", "memmap"):
        if value.dtype.kind not in "biuf" or value.size > 8 * MOST_CELLS:
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
    if type(value) is torch.Tensor and value.is_nested:  # without a shape
        return ()
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
