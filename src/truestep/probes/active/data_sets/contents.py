"""Comparison of samples by their values: a digest of each, and the detection of samples that can be equal by chance."""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.data_sets.drawn import Bases, Samples, numbered
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused, copy_of, mind

_MOST_ROWS = 100_000
_MOST_BYTES = 1 << 28
_AT_ONCE = 256
_MOST_READ = 5_000
_READ_TWICE = 4
_LOOKED_AT = 256
_COLUMNS = 4096
_LEAST_CONTINUOUS = 4
_LEAST_VARIED = 64
_LEVELS = 16
_LEAST_BITS = 64.0
"""Least information in a sequence, so that few of them are equal by chance."""
_LEAST_BITS_OF_COLUMNS = 128.0
"""The same in samples with columns, such as the pixels of a picture, which depend on each other."""
_LEAST_DIFFERENT, _DIFFERENT = 32, 0.97
"""Least number of samples of several parts that are compared, and least share of different ones."""
_SEEDS = (21, 22)


class Changing(Refused):
    """The samples of a data set change each time they are read."""


class Contents:
    """Digests of samples, cached for each data set."""

    def __init__(self, scene: Scene, bases: Bases) -> None:
        self._scene = scene
        self._bases = bases
        self._digests: dict[tuple[int, bool], dict[int, bytes]] = {}
        """Number of a data set, and True for its stored samples, to the digests of its samples by their indices."""
        self._varied: dict[tuple[int, bool], bool] = {}
        self._continuous: set[tuple[int, bool]] = set()
        """Data sets with several numbers in each sample that are nearly all different."""

    def digests(self, samples: Samples, *, stored: bool = False, some: bool = False) -> list[bytes]:
        """Return a digest of each sample.

        Args:
            samples: the samples.
            some: True for some hundred of them, evenly spread.
            stored: True to compare the stored samples of data sets that change them at random when they are read.

        Raises:
            Changing: the samples change from read to read.
            Refused: the samples cannot be read, or can be equal by chance.
        """
        found = []
        for number, marks in samples.items():
            read = self._digests.setdefault((number, stored), {})
            indices = numbered(marks)
            indices = indices[:: max(1, len(indices) // _LOOKED_AT)] if some else indices
            missing = [index for index in indices if index not in read]
            if missing:
                read.update(self._read(number, missing, stored))
            found += [read[index] for index in indices]
        return found

    def is_continuous(self, samples: Samples) -> bool:
        """Return True if no two samples with digests can be equal by chance, or by few values of their columns."""
        return all((number, False) in self._continuous for number in samples)

    def _read(self, number: int, indices: list[int], stored: bool) -> dict[int, bytes]:
        base, torch = self._bases[number], self._scene.torch
        if stored:
            held = _stored(base, torch)
            samples: Iterator[tuple[int, Any]] = ((index, held[index]) for index in indices)
        elif type(base) is torch.utils.data.TensorDataset:
            if len(indices) > _MOST_ROWS or sum(t.numel() * t.element_size() for t in base.tensors) > _MOST_BYTES:
                raise Refused("the samples are too many to compare")
            samples = ((i, tuple(t[i] for t in base.tensors)) for i in indices)
        elif type(base) in (list, tuple):  # reading them runs no code
            if len(indices) > _MOST_ROWS:
                raise Refused("the samples are too many to compare")
            samples = ((index, base[index]) for index in indices)
        else:
            samples = self._from_copy(base, indices)
        first = list(itertools.islice(samples, _LOOKED_AT))
        if (number, stored) not in self._varied:
            inputs = [self._inputs(sample) for _, sample in first]
            if len({len(parts) for parts in inputs}) > 1:
                raise Refused("its samples have different parts")
            columns = [list(rows) for rows in zip(*inputs, strict=True)]
            self._varied[number, stored] = any(map(_varied, columns)) or _differ(inputs)
            if any(len({*map(len, rows)}) == 1 and _continuous(rows) >= _LEAST_CONTINUOUS for rows in columns):
                self._continuous.add((number, stored))
        if not self._varied[number, stored]:
            raise Refused("its samples have so few values that they can be equal by chance")
        found: dict[int, bytes] = {}
        for index, sample in itertools.chain(first, samples):
            if len(found) % _AT_ONCE == 0:
                mind(self._scene)
            found[index] = _digest(sample, torch)
        return found

    def _from_copy(self, base: Any, indices: list[int]) -> Iterator[tuple[int, Any]]:
        """Yield samples from a copy of a data set; the first ones are read twice, to detect random samples."""
        if not hasattr(base, "__getitem__") or len(indices) > _MOST_READ:
            raise Refused("the samples are too many to compare")
        copy, torch = copy_of(base, self._scene), self._scene.torch
        try:
            for index in indices[:_READ_TWICE]:
                twice = []
                for seed in _SEEDS:
                    restored_states.seed(torch, seed)
                    twice.append(_digest(copy[index], torch))
                if twice[0] != twice[1]:
                    raise Changing("its samples change each time they are read")
            for index in indices:
                mind(self._scene)  # a sample can be a file that takes long to read
                yield index, copy[index]
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"a copy of it raised {type(error).__name__}") from None

    def _inputs(self, sample: Any) -> list[list[float]]:
        """Return some values of each part of a sample's input: of all parts but the last, which is the target."""
        whole = sample[:-1] if type(sample) in (tuple, list) and len(sample) > 1 else sample
        torch, found = self._scene.torch, []
        for value in _flat(whole):
            if _is_text(value):
                found.append([float(zlib.crc32(str(one).encode())) for one in value[:_COLUMNS]])
            numbers = type(value).__name__ == "ndarray" and value.dtype.kind in "biuf"
            values = torch.from_numpy(value) if numbers else value
            if isinstance(values, torch.Tensor) and not values.is_complex():
                flat = values.detach().reshape(-1)
                found.append([float(number) for number in flat[:: max(1, len(flat) // _COLUMNS)].tolist()])
        if not found:
            raise Refused("its samples are not tensors")
        return found


def _flat(value: Any) -> Iterator[Any]:
    """Yield the parts of an input: categories and numbers, a text, or the values of a dict."""
    if type(value) in (tuple, list, dict) and not _is_text(value):
        for part in value.values() if type(value) is dict else value:
            yield from _flat(part)
    else:
        yield value


def _is_text(value: Any) -> bool:
    """Return True for a text, and for a list of its words or their numbers."""
    words = type(value) is list and len(value) > 0 and all(type(one) in (str, int) for one in value)
    return words or type(value) is str


def _varied(rows: list[list[float]]) -> bool:
    """Return True if samples have so many different values that few can be equal by chance.

    >>> _varied([[index / 7, index * 0.3, index - 0.5, index**0.5] for index in range(50)])
    True
    >>> _varied([[index % 2, index % 3, index % 5, index % 7] for index in range(50)])
    False
    >>> _varied([[(index * place) % 29 for place in range(20 + index % 7)] for index in range(50)])
    True
    """
    if len(rows) < 2:
        return False
    if len({len(row) for row in rows}) > 1:
        return _bits(rows) >= _LEAST_BITS
    columns = list(zip(*rows, strict=True))
    varied = sum(len(set(column)) >= _LEVELS for column in columns)
    if _continuous(rows) >= _LEAST_CONTINUOUS or varied >= _LEAST_VARIED:
        return True
    return len(set(map(tuple, rows))) == len(rows) and sum(map(_entropy, columns)) >= _LEAST_BITS_OF_COLUMNS


def _differ(inputs: list[list[list[float]]]) -> bool:
    """Return True if nearly all samples of several parts, such as categories and numbers, are different.

    How many are equal by chance then shows in how many are repeated within the training and within the evaluation.
    """
    rows = {tuple(map(tuple, parts)) for parts in inputs}
    return len(inputs) >= _LEAST_DIFFERENT and min(map(len, inputs)) > 1 and len(rows) >= _DIFFERENT * len(inputs)


def _continuous(rows: list[list[float]]) -> int:
    """Return the number of columns in which most samples have a value that few others have."""
    unlike = set(map(tuple, rows))
    return sum(2 * len(set(column)) > len(unlike) for column in zip(*unlike, strict=True))


def _bits(rows: list[list[float]]) -> float:
    """Return the information in a sequence of median length, in bits, if its values are independent."""
    return _entropy(itertools.chain.from_iterable(rows)) * statistics.median(map(len, rows))


def _entropy(values: Iterable[float]) -> float:
    """Return the entropy of values, in bits.

    >>> _entropy([0.0, 1.0, 2.0, 3.0])
    2.0
    """
    counts = Counter(values)
    every = counts.total()
    return -sum(count / every * math.log2(count / every) for count in counts.values())


def _stored(base: Any, torch: Any) -> Any:
    """Return the largest tensor or array that a data set holds with one row for each of its samples.

    Raises:
        Changing: there is none.
    """
    held = getattr(base, "__dict__", {}).values()
    arrays = (one for one in held if type(one) is torch.Tensor or type(one).__name__ == "ndarray")
    rows = [one for one in arrays if one.ndim > 1 and len(one) == len(base)]
    if not rows:
        raise Changing("its samples change each time they are read")
    return max(rows, key=lambda one: int(one.nbytes))


def _digest(sample: Any, torch: Any) -> bytes:
    made = hashlib.blake2b(digest_size=12)
    _feed(sample, torch, made, 0)
    return made.digest()


def _feed(value: Any, torch: Any, made: Any, depth: int) -> None:
    """Add a sample to a digest.

    Raises:
        Refused: the sample contains other objects than tensors, numbers and strings.
    """
    if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
        tensor = value.detach().cpu()
        tensor = tensor.view(torch.int16) if tensor.dtype is torch.bfloat16 else tensor
        made.update(repr((str(value.dtype), tuple(value.shape))).encode())
        made.update(tensor.contiguous().numpy().tobytes())
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes") and value.dtype != object:
        made.update(repr((str(value.dtype), value.shape)).encode())
        made.update(value.tobytes())
    elif isinstance(value, bool | int | float | str | bytes | type(None)):
        made.update(repr(value).encode())
    elif type(value) in (tuple, list) and depth < 4:
        made.update(b"(")
        for item in value:
            _feed(item, torch, made, depth + 1)
    elif type(value) is dict and depth < 4:
        for key, item in value.items():
            made.update(repr(key).encode())
            _feed(item, torch, made, depth + 1)
    else:
        raise Refused(f"its samples contain a {type(value).__name__}")


def repeated(digests: list[bytes]) -> float:
    """Return the share of samples with at least one equal sample.

    >>> repeated([b"a", b"b", b"a", b"c"])
    0.5
    """
    times: dict[bytes, int] = {}
    for digest in digests:
        times[digest] = times.get(digest, 0) + 1
    return sum(number for number in times.values() if number > 1) / max(1, len(digests))
