"""Check: a sample of the evaluation data set differs when it is read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.copies import Refused, copy_of, mind
from truestep.probes.context.scene import Scene

_SEEDS = (11, 12, 13, 14)
_SAMPLES = 4
_DEEP = 8


@dataclass(frozen=True, slots=True)
class Reads:
    """Result of the check."""

    differ: bool = False
    """True if the input of a sample differed from read to read, and its label, an integer, did not."""


def read_again(data: Any, scene: Scene) -> Reads:
    """Read the first samples of a copy of a data set several times.

    Raises:
        Refused: the data set cannot be copied, or the copy cannot be read.
    """
    copy = copy_of(data, scene)
    differ = False
    for index in range(min(_SAMPLES, len(data))):
        samples = []
        for number in _SEEDS:
            mind(scene)
            restored_states.seed(scene.torch, number)
            try:
                samples.append(copy[index])
            except Exception as error:
                raise Refused(f"a copy of it raised {type(error).__name__}") from None
        inputs, labels = zip(*(_parts(sample, scene.torch) for sample in samples), strict=True)
        if any(label != labels[0] for label in labels):
            return Reads()
        differ = differ or any(value != inputs[0] for value in inputs)
    return Reads(differ=differ)


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


def shared(data: Any, others: Iterable[tuple[int, Any]]) -> tuple[int, ...]:
    """Return the numbers of loaders of other samples with the same data set or the same transform."""
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
        elif transforms & _transforms(other_base):
            found.append(number)
    return tuple(found)


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


def _transforms(data: Any) -> set[int]:
    """Return the ids of the callable attributes of a data set, which can transform its samples."""
    held = getattr(data, "__dict__", {}).values()
    return {id(value) for value in held if callable(value) and not isinstance(value, type)}
