"""The samples that a loader draws, as far as they are known from its sampler and torch's wrappers of data sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused, mind
from truestep.seams.refs import Ref

_DEEP = 8
_MOST_SAMPLES = 1_000_000
_QUICK = 10_000
"""Number of samples that are listed in about a millisecond, without regard to the budget."""
_ATOMS = (int, float, str, bytes, type(None))

Samples = dict[int, int]
"""Number of a data set to an int with one byte for each of its samples: 1 if the sample is drawn, else 0."""


class _Inside:
    """A weak reference to a list, which does not support them: through a loader or a subset that holds it."""

    __slots__ = ("_holder",)

    def __init__(self, holder: Any) -> None:
        self._holder = Ref(holder)

    def __call__(self) -> Any:
        return getattr(self._holder(), "dataset", None)


class Bases:
    """Numbers of the data sets below subsets; data sets with equal samples have the same number."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._numbers: dict[int, int] = {}
        self._held: dict[int, Ref | _Inside] = {}

    def __getitem__(self, number: int) -> Any:
        """Return the data set with a number.

        Raises:
            Refused: the data set was freed.
        """
        base = self._held[number]()
        if base is None:
            raise Refused("a data set was freed")
        return base

    def number(self, base: Any, holder: Any) -> int:
        """Return the number of a data set.

        Args:
            base: the data set.
            holder: the loader or the subset that holds it; None if it is unknown.

        Raises:
            Refused: the data set does not support weak references.
        """
        try:
            met, new = self._scene.numbers.of("base", base)
        except TypeError:
            return self._inside(base, holder)
        if new:
            others = list(self._held.items())
            self._numbers[met], self._held[met] = met, Ref(base)
            self._numbers[met] = next((number for number, ref in others if self._twins(ref(), base)), met)
        return self._numbers[met]

    def _inside(self, base: Any, holder: Any) -> int:
        """Return the number of a list, which is known as long as its holder is alive.

        Raises:
            Refused: it is another object than a list, or its holder is unknown.
        """
        known = next((number for number, ref in self._held.items() if ref() is base), None)
        if known is not None:
            return self._numbers[known]
        if holder is None or type(base) not in (list, tuple):
            raise Refused("a data set does not support weak references")
        met, _ = self._scene.numbers.of("base", holder)
        self._numbers[met], self._held[met] = met, _Inside(holder)
        return met

    def drawn(self, iterator: Any) -> Samples:
        """Return the samples that the loader of an iterator draws.

        Raises:
            Refused: the samples are unknown.
        """
        from torch.utils import data

        batched, dataset = iterator._index_sampler, iterator._dataset
        sampler: Any = batched.sampler if type(batched) is data.BatchSampler else batched
        indices: Iterable[Any] | None
        if isinstance(dataset, data.IterableDataset):
            raise Refused("the samples of a loader have no indices")
        if type(sampler) in (data.SequentialSampler, data.RandomSampler) and sampler.data_source is dataset:
            indices = None
        elif type(sampler) is data.SubsetRandomSampler:
            indices = sampler.indices
        elif type(sampler) is data.WeightedRandomSampler and len(sampler.weights) == len(dataset):
            indices = [index for index, weight in enumerate(sampler.weights.tolist()) if weight]
        else:
            raise Refused("a loader has a custom sampler")
        found: Samples = {}
        holder = next((one for one in self._scene.numbers.alive("loader") if one.dataset is dataset), None)
        self._collect(dataset, None if indices is None else [int(index) for index in indices], found, 0, holder)
        return found

    def _collect(self, dataset: Any, indices: list[int] | None, found: Samples, depth: int, holder: Any) -> None:
        """Add the samples at some indices of a data set to `found`, or all samples if `indices` is None."""
        from torch.utils import data

        length = len(dataset)
        if length > _MOST_SAMPLES or depth > _DEEP:
            raise Refused("a data set is too large")
        if length > _QUICK:
            mind(self._scene)
        indices = None if indices is None else [index % max(length, 1) for index in indices]
        if type(dataset) is data.Subset:
            own = [int(index) for index in dataset.indices]
            some = own if indices is None else [own[i] for i in indices]
            self._collect(dataset.dataset, some, found, depth + 1, dataset)
        elif type(dataset) is data.ConcatDataset:
            start = 0
            for part, end in zip(dataset.datasets, dataset.cumulative_sizes, strict=True):
                here = None if indices is None else [i - start for i in indices if start <= i < end]
                self._collect(part, here, found, depth + 1, None)
                start = end
        else:
            marks = bytearray(b"\1" * length if indices is None else length)
            for index in indices or ():
                marks[index] = 1
            number = self.number(dataset, holder)
            found[number] = found.get(number, 0) | int.from_bytes(marks, "little")

    # --- data sets with equal samples --------------------------------------------------------------------------

    def _twins(self, one: Any, two: Any) -> bool:
        """Return True if two data sets hold the same samples; functions applied to them can differ."""
        held, other = getattr(one, "__dict__", None), getattr(two, "__dict__", None)
        if one is None or type(one) is not type(two) or not held or not other or held.keys() != other.keys():
            return False
        length = len(two)
        if len(one) != length:
            return False
        telling = False
        for name, value in held.items():
            if not self._equal(value, other[name], 0) and not _functions(value, other[name]):
                return False
            telling = telling or self._tells(value, length)
        return telling

    def _equal(self, one: Any, two: Any, depth: int) -> bool:
        if one is two:
            return True
        if type(one) is not type(two) or depth > 3:
            return False
        if type(one) in (bool, *_ATOMS):
            return bool(one == two)
        if type(one) is self._scene.torch.Tensor:
            return one.dtype == two.dtype and one.device == two.device and bool(self._scene.torch.equal(one, two))
        if type(one).__name__ == "ndarray" and one.dtype.kind in "biufU":
            return bool(one.dtype == two.dtype and one.shape == two.shape and (one == two).all())
        if type(one) is dict:
            return one.keys() == two.keys() and all(self._equal(one[key], two[key], depth + 1) for key in one)
        if type(one) in (list, tuple):
            return len(one) == len(two) and all(self._equal(a, b, depth + 1) for a, b in zip(one, two, strict=True))
        return False

    def _tells(self, value: Any, length: int) -> bool:
        """Return True if a value contains the samples themselves, or the names of their files."""
        if type(value) is self._scene.torch.Tensor or type(value).__name__ == "ndarray":
            wide = value.ndim > 1 and len(value) == length and str(value.dtype) not in ("object", "bool")
            return wide and bool((value[:1] != value).any())
        if type(value) in (list, tuple) and len(value) == length:
            names = {item if isinstance(item, str) else item[0] for item in value if _named(item)}
            return len(names) == length
        if type(value) is tuple:
            return any(self._tells(item, length) for item in value[:1])
        return False


def _functions(one: Any, two: Any) -> bool:
    return all(value is None or (callable(value) and not isinstance(value, type)) for value in (one, two))


def _named(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, tuple) and bool(item) and isinstance(item[0], str))


def count(samples: Samples) -> int:
    """Return the number of samples."""
    return sum(marks.bit_count() for marks in samples.values())


def common(one: Samples, two: Samples) -> Samples:
    """Return the samples that are in both."""
    return {number: marks & two[number] for number, marks in one.items() if number in two}


def without(one: Samples, two: Samples) -> Samples:
    """Return the samples of the first that are not in the second."""
    return {number: marks & ~two.get(number, 0) for number, marks in one.items()}


def together(one: Samples, two: Samples) -> Samples:
    """Return the samples that are in at least one of the two."""
    return {number: one.get(number, 0) | two.get(number, 0) for number in {**one, **two}}


def numbered(marks: int) -> list[int]:
    """Return the indices of samples."""
    return [index for index, mark in enumerate(marks.to_bytes((marks.bit_length() + 7) // 8, "little")) if mark]
