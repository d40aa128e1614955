"""Comparison of samples by their values: a digest of each, and the detection of samples that can be equal by chance."""

from __future__ import annotations

import hashlib
import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import Any

from truestep.probes.active import restored_states
from truestep.probes.active.copies import Refused, copy_of, mind
from truestep.probes.active.data_sets.drawn import Bases, Samples, numbered
from truestep.probes.context.scene import Scene

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
_SEEDS = (21, 22)


class Contents:
    """Digests of samples, cached for each data set."""

    def __init__(self, scene: Scene, bases: Bases) -> None:
        self._scene = scene
        self._bases = bases
        self._digests: dict[int, dict[int, bytes]] = {}
        self._varied: dict[int, bool] = {}

    def digests(self, samples: Samples) -> list[bytes]:
        """Return a digest of each sample.

        Raises:
            Refused: the samples cannot be read, change from read to read, or can be equal by chance.
        """
        found = []
        for number, marks in samples.items():
            read = self._digests.setdefault(number, {})
            missing = [index for index in numbered(marks) if index not in read]
            if missing:
                read.update(self._read(number, missing))
            found += [read[index] for index in numbered(marks)]
        return found

    def _read(self, number: int, indices: list[int]) -> dict[int, bytes]:
        base, torch = self._bases[number], self._scene.torch
        if type(base) is torch.utils.data.TensorDataset:
            if len(indices) > _MOST_ROWS or sum(t.numel() * t.element_size() for t in base.tensors) > _MOST_BYTES:
                raise Refused("the samples are too many to compare")
            samples: Iterator[tuple[int, Any]] = ((i, tuple(t[i] for t in base.tensors)) for i in indices)
        else:
            samples = self._from_copy(base, indices)
        first = list(itertools.islice(samples, _LOOKED_AT))
        if number not in self._varied:
            self._varied[number] = _varied([self._input(sample) for _, sample in first])
        if not self._varied[number]:
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
                    raise Refused("its samples change each time they are read")
            for index in indices:
                yield index, copy[index]
        except Refused:
            raise
        except Exception as error:
            raise Refused(f"a copy of it raised {type(error).__name__}") from None

    def _input(self, sample: Any) -> list[float]:
        """Return some values of a sample's input."""
        value = sample[0] if type(sample) in (tuple, list) and sample else sample
        if type(value).__name__ == "ndarray" and value.dtype.kind in "biuf":
            value = self._scene.torch.from_numpy(value)
        if not isinstance(value, self._scene.torch.Tensor) or value.is_complex():
            raise Refused("its samples are not tensors")
        flat = value.detach().reshape(-1)
        return [float(number) for number in flat[:: max(1, len(flat) // _COLUMNS)].tolist()]


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
    distinct = [len(set(column)) for column in zip(*rows, strict=True)]
    continuous = sum(2 * different > len(rows) for different in distinct)
    varied = sum(different >= _LEVELS for different in distinct)
    return continuous >= _LEAST_CONTINUOUS or varied >= _LEAST_VARIED


def _bits(rows: list[list[float]]) -> float:
    """Return the information in a sequence of median length, in bits, if its values are independent."""
    counts = Counter(itertools.chain.from_iterable(rows))
    every = counts.total()
    entropy = -sum(count / every * math.log2(count / every) for count in counts.values())
    return entropy * statistics.median(map(len, rows))


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
