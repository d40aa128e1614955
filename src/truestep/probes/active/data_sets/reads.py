"""Check: a sample of the evaluation data set differs when it is read again."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused, copy_of, mind

_SEEDS = (11, 12, 13, 14)
_SAMPLES = 4
_DEEP = 8
_SWITCH = re.compile(r"aug|train|random|jitter|crop|flip|transform", re.IGNORECASE)
"""Names of attributes that turn random changes of samples on."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Result of the check."""

    differ: bool = False
    """True if the input of a sample differed from read to read, and its label, an integer, did not."""
    switch: str = ""
    """Attribute of the data set that is True, and without which the samples do not differ."""


def read_again(data: Any, scene: Scene) -> Reads:
    """Read the first samples of a copy of a data set several times.

    Raises:
        Refused: the data set cannot be copied, or the copy cannot be read.
    """
    copy = copy_of(data, scene)
    if not _differ(copy, scene):
        return Reads()
    base, _ = _base(copy)
    for name, value in list(getattr(base, "__dict__", {}).items()):
        if value is True and _SWITCH.search(name):
            setattr(base, name, False)
            try:
                if not _differ(copy, scene):
                    return Reads(differ=True, switch=name)
            except Refused:
                pass
            setattr(base, name, True)
    return Reads(differ=True)


def _differ(data: Any, scene: Scene) -> bool:
    """Return True if the inputs of the first samples of a copy differ from read to read, and their labels do not."""
    differ = False
    for index in range(min(_SAMPLES, len(data))):
        samples = []
        for number in _SEEDS:
            mind(scene)
            restored_states.seed(scene.torch, number)
            try:
                samples.append(data[index])
            except Exception as error:
                raise Refused(f"a copy of it raised {type(error).__name__}") from None
        inputs, labels = zip(*(_parts(sample, scene.torch) for sample in samples), strict=True)
        if any(label != labels[0] for label in labels):
            return False
        differ = differ or any(value != inputs[0] for value in inputs)
    return differ


def _parts(sample: Any, torch: Any) -> tuple[Any, Any]:
    """Return a sample's input and its label, in a form that can be compared."""
    if type(sample) not in (tuple, list) or len(sample) != 2:
        raise Refused("its samples are not pairs of an input and a label")
    label = sample[1].item() if hasattr(sample[1], "item") and getattr(sample[1], "ndim", 1) == 0 else sample[1]
    if not isinstance(label, int):
        raise Refused("its labels are not integers")
    value = sample[0]
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.detach().cpu().contiguous().numpy().tobytes()), label
    if type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        return (value.shape, value.tobytes()), label
    raise Refused("its inputs are not tensors or arrays")


def shared(data: Any, others: Iterable[tuple[int, Any]], switch: str = "") -> tuple[int, ...]:
    """Return the numbers of loaders of other samples with the same data set, transform, or switch."""
    base, mine = _base(data)
    transforms = _transforms(base)
    found = []
    for number, other in others:
        if other is data:
            continue
        other_base, its = _base(other)
        if other_base is base:
            if mine is not None and its is not None and not set(mine) & set(its):
                found.append(number)
        elif _alike(transforms, _transforms(other_base)) or (switch and _is_on(switch, base, other_base)):
            found.append(number)
    return tuple(found)


def _is_on(switch: str, base: Any, other: Any) -> bool:
    """Return True if another data set of the same class has the same attribute on."""
    return type(other) is type(base) and vars(other).get(switch) is True


def _base(data: Any) -> tuple[Any, list[int] | None]:
    """Return the data set below subsets, and the indices of the samples; None for all samples, or if unknown."""
    indices: list[int] | None = None
    for _ in range(_DEEP):
        if type(data).__name__ != "Subset" or not hasattr(data, "indices"):
            break
        own = [int(index) for index in data.indices]
        indices = own if indices is None else [own[index] for index in indices]
        data = data.dataset
    return data, indices


def _transforms(data: Any) -> dict[int, Any]:
    """Return keys of the callable attributes of a data set, which can transform its samples, by their ids."""
    held = getattr(data, "__dict__", {}).values()
    return {id(value): _key(value, 0) for value in held if callable(value) and not isinstance(value, type)}


def _alike(mine: dict[int, Any], others: dict[int, Any]) -> bool:
    """Return True if two data sets share a transform, or if the first has only such as the other has, built alike."""
    return not mine.keys().isdisjoint(others) or (bool(mine) and set(mine.values()) <= set(others.values()))


def _key(value: Any, depth: int) -> Any:
    """Return a key that is equal for one object, and for transforms of one class that were built alike."""
    if isinstance(value, bool | int | float | str | bytes | type(None)):
        return type(value), value
    if type(value) in (tuple, list) and depth < _DEEP:
        return type(value), tuple(_key(item, depth + 1) for item in value)
    if type(value) is dict and depth < _DEEP:
        return dict, tuple((_key(name, depth + 1), _key(item, depth + 1)) for name, item in value.items())
    held = getattr(value, "__dict__", None)
    if callable(value) and type(held) is dict and not isinstance(value, type | FunctionType) and depth < _DEEP:
        return type(value), _key(held, depth + 1)
    return id(value)
