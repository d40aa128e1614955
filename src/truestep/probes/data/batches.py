"""Describe a batch: a fingerprint of sampled values, and the order of its labels."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_MOST_TENSORS = 8
_DEEPEST = 3
_ELEMENTS = 1024
_LARGEST_COPY = 1 << 20
_MOST_LABELS = 65_536
_LEAST_ROWS = 8
_LEAST_WIDTH = 8
_LEAST_VALUES = 4
_NAMES = ("label", "labels", "target", "targets")


class Description(NamedTuple):
    """Description of a batch."""

    fingerprint: str
    variety: int
    labels: tuple[int, ...]
    labelled: bool
    alike: int


def describe(torch: Any, batch: Any) -> Description | None:
    """Describe a batch of plain tensors on the CPU; None for anything else."""
    tensors: list[tuple[str, Any]] = []
    for name, tensor in _tensors(torch, batch, "", 0):
        if len(tensors) == _MOST_TENSORS or not _is_plain(torch, tensor):
            return None
        tensors.append((name, tensor.detach()))
    if not tensors:
        return None
    digest = hashlib.blake2b(digest_size=8)
    fractions = set[float]()
    for _, tensor in tensors:
        values = _sample(tensor)
        digest.update(repr((str(tensor.dtype), tuple(tensor.shape))).encode())
        digest.update(array("d", values).tobytes())
        fractions.update(value for value in values if value % 1)
    columns = [(name, tensor) for name, tensor in tensors if _is_column(tensor, tensors[0][1])]
    whole = [(name, tensor) for name, tensor in columns if not tensor.is_floating_point()]
    labels = _labels(whole or [(name, tensor) for name, tensor in columns if _holds_classes(tensor)])
    alike = _alike([tensor for _, tensor in tensors])
    return Description(digest.hexdigest(), len(fractions), _order(labels), bool(labels), alike)


def _tensors(torch: Any, batch: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Yield the tensors of a batch with their names."""
    if isinstance(batch, torch.Tensor):
        yield name, batch
    elif depth == _DEEPEST:
        return
    elif isinstance(batch, Mapping):
        for key, value in list(batch.items())[: 2 * _MOST_TENSORS]:
            yield from _tensors(torch, value, str(key), depth + 1)
    elif isinstance(batch, tuple | list):
        for value in batch[: 2 * _MOST_TENSORS]:
            yield from _tensors(torch, value, "", depth + 1)


def _is_plain(torch: Any, tensor: Any) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.is_cpu
        and not tensor.is_complex()
        and not tensor.is_quantized
        and tensor.numel() > 0
        and (tensor.is_contiguous() or tensor.numel() <= _LARGEST_COPY)
    )


def _sample(tensor: Any) -> list[float]:
    """Return some values, evenly spread, with a stride that does not follow the columns of a picture."""
    flat = tensor.reshape(-1)
    step = max(1, flat.numel() // _ELEMENTS) | 1
    return [float(value) for value in flat[::step][:_ELEMENTS].tolist()]


def _alike(tensors: list[Any]) -> int:
    """Return the number of samples if all of them are equal although their labels differ; else 0."""
    rows = len(tensors[0]) if tensors[0].dim() else 0
    if rows < _LEAST_ROWS or any(not tensor.dim() or len(tensor) != rows for tensor in tensors):
        return 0
    samples = differing = 0
    for tensor in tensors:
        flat = tensor.reshape(rows, -1)
        width = flat.shape[1]
        some = flat[:, :: max(1, width // _ELEMENTS)]
        if bool((some == some[:1]).all()):
            samples += width >= _LEAST_WIDTH and len(set(some[0].tolist())) >= _LEAST_VALUES
        elif width == 1:
            differing += 1
        else:
            return 0
    return rows if samples and differing else 0


def _is_column(tensor: Any, first: Any) -> bool:
    """Return True if a tensor holds one value per sample of the batch: (n,) or (n, 1)."""
    return (
        first.dim() > 0
        and (tensor.dim() == 1 or (tensor.dim() == 2 and tensor.shape[1] == 1))
        and 1 < len(tensor) == len(first)
        and len(tensor) <= _MOST_LABELS
    )


def _holds_classes(tensor: Any) -> bool:
    """Return True if floating-point values are classes: 0 and 1, or -1 and 1, as binary losses take them."""
    values = set(tensor.reshape(-1).tolist())
    return values <= {0.0, 1.0} or values <= {-1.0, 1.0}


def _labels(candidates: list[tuple[str, Any]]) -> list[int]:
    """Return the labels of a batch: the tensor with such a name, or the only integers that are not all different."""
    named = [tensor for name, tensor in candidates if name in _NAMES]
    columns = [[int(value) for value in tensor.reshape(-1).tolist()] for tensor in named or [t for _, t in candidates]]
    repeating = [column for column in columns if len(set(column)) < len(column)]
    return repeating[0] if len(repeating) == 1 else []


def _order(labels: list[int]) -> tuple[int, ...]:
    """Return the first and last label and their number, if they never decrease; else ()."""
    if not labels or any(one > two for one, two in itertools.pairwise(labels)):
        return ()
    return labels[0], labels[-1], len(set(labels))
