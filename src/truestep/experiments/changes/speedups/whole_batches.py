"""Batches read by one index: from tensors in memory, or from tensors into which all samples are read once."""

from __future__ import annotations

import os
import random
import time
import weakref
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.loader_arguments import LoaderArguments
from truestep.experiments.changes.parts.speedup import Stage
from truestep.experiments.running.inside.one_time import aside
from truestep.seams.patch import patch

_WORKERS = ("loader-workers", "persistent-workers", "prefetch")
_CHUNK = 512
"""Number of samples per call of collate."""
_TRIED = 64
"""Number of samples that are read twice, to check that a data set returns equal samples again."""
_MOST_S = 120.0
"""Longest time for reading all samples, in seconds."""
_ALONE = {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None, "multiprocessing_context": None}
"""Arguments of a loader without workers."""


class WholeBatches(LoaderArguments):
    """Batches of a `TensorDataset`, or of a `Subset` of one, are read by one index, without workers."""

    name = "whole-batches"
    summary = "batches of a TensorDataset read by one index instead of sample by sample"
    lines = (
        "loader = run.loader(dataset, batch_size=..., shuffle=True)   # truestep.Run\n"
        "for rows in torch.randperm(len(x)).split(batch_size):   # plain torch\n"
        "    xb, yb = x[rows], y[rows]"
    )
    priority = 95
    stage = Stage.WORKERS
    combines = True
    excludes = ("samples-once", *_WORKERS)

    def install(self, stack: ExitStack) -> None:
        super().install(stack)
        _fetch(stack, self._read)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        from truestep.loop.loading.in_memory import in_memory

        if given.get("collate_fn") is not None or in_memory(given["dataset"]) is None:
            return {}
        return {"num_workers": 0, **(_ALONE if given.get("num_workers") else {})}

    def _read(self, dataset: Any) -> Any:
        from truestep.loop.loading.in_memory import in_memory

        return in_memory(dataset)


class SamplesOnce(LoaderArguments):
    """All samples are read once into tensors, before the first batch, and batches are read from these by one index.

    It applies to map-style data sets that return equal samples again and draw no random numbers, with samples of
    tensors, arrays and numbers that take at most a quarter of the free memory. The time of reading is one-time work.
    """

    name = "samples-once"
    summary = "all samples of a data set read once into tensors; batches read from these by one index"
    lines = (
        "x, y = (torch.stack([torch.as_tensor(v) for v in f]) for f in zip(*dataset))\n"
        "loader = run.loader(TensorDataset(x, y), batch_size=..., shuffle=True)\n"
        "for rows in torch.randperm(len(x)).split(batch_size):   # plain torch\n"
        "    xb, yb = x[rows], y[rows]"
    )
    priority = 90
    stage = Stage.WORKERS
    excludes = _WORKERS

    def __init__(self) -> None:
        super().__init__()
        self._read: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def install(self, stack: ExitStack) -> None:
        super().install(stack)
        _fetch(stack, self._reader)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("collate_fn") is not None or self._reader(given["dataset"]) is None:
            return {}
        return {"num_workers": 0, **(_ALONE if given.get("num_workers") else {})}

    def _reader(self, dataset: Any) -> Any:
        from truestep.loop.loading.in_memory import in_memory

        try:
            if dataset in self._read:
                return self._read[dataset]
            if in_memory(dataset) is None and hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__"):
                with aside():
                    self._read[dataset] = _all(dataset)
                return self._read[dataset]
        except TypeError:  # a list has no weak references
            return None
        return None


def _fetch(stack: ExitStack, reader: Any) -> None:
    """Let loaders with the default collate function read each batch by one index."""
    from torch.utils.data import default_collate
    from torch.utils.data._utils.fetch import _MapDatasetFetcher

    def fetch(fetcher: Any, indices: Any) -> Any:
        import torch

        if fetcher.auto_collation and fetcher.collate_fn is default_collate:
            data = reader(fetcher.dataset)
            if data is not None:
                return _like_collated(data.batch(torch.as_tensor(indices, dtype=torch.int64)))
        return fetch_of_torch(fetcher, indices)

    fetch_of_torch = patch(stack, _MapDatasetFetcher, "fetch", fetch)


def _like_collated(batch: Any) -> Any:
    return list(batch) if isinstance(batch, tuple) else batch


class _Columns:
    """Samples as one tensor per field, in the shape in which torch collates them: a tensor, a list or a dict."""

    def __init__(self, batches: list[Any]) -> None:
        import torch

        first = batches[0]
        self._names = list(first) if isinstance(first, dict) else None
        self._alone = isinstance(first, torch.Tensor)
        rows = [[batch] if self._alone else list(batch.values() if self._names else batch) for batch in batches]
        self._fields = [torch.cat(field) for field in zip(*rows, strict=True)]

    def batch(self, indices: Any) -> Any:
        found = [field.index_select(0, indices) for field in self._fields]
        if self._alone:
            return found[0]
        return dict(zip(self._names, found, strict=True)) if self._names else found


def _all(dataset: Any) -> _Columns | None:
    """Return all samples; None if a data set draws random numbers, changes, is too large or has other samples."""
    import torch
    from torch.utils.data import IterableDataset, default_collate

    count = len(dataset)
    if not count or isinstance(dataset, IterableDataset) or hasattr(dataset, "__getitems__"):
        return None
    tried = range(0, count, max(1, count // _TRIED))
    before, begun = _states(), time.perf_counter()
    try:
        first = default_collate([dataset[index] for index in tried])
        each_s = (time.perf_counter() - begun) / len(tried)
        again = default_collate([dataset[index] for index in tried])
    except Exception:  # the script gets the same exception when it reads the sample
        _restore(before)
        return None
    drawn = not _equal(before, _states())
    _restore(before)
    fields = _fields(first)
    if drawn or fields is None or not all(map(_same, fields, _fields(again) or ())):
        return None
    size = sum(field.nbytes for field in fields) / len(tried) * count
    if size > _free_bytes() / 4 or each_s * count > _MOST_S:
        return None
    try:
        batches = [
            default_collate([dataset[index] for index in range(start, min(start + _CHUNK, count))])
            for start in range(0, count, _CHUNK)
        ]
    except Exception:  # of the data set, or samples of several shapes
        return None
    finally:
        _restore(before)
    kinds = [[field.dtype for field in _fields(batch) or ()] for batch in batches]
    shapes = [[field.shape[1:] for field in _fields(batch) or ()] for batch in batches]
    if any(kind != kinds[0] for kind in kinds) or any(shape != shapes[0] for shape in shapes):
        return None
    assert isinstance(batches[0], torch.Tensor | list | dict)
    return _Columns(batches)


def _fields(batch: Any) -> list[Any] | None:
    """Return the tensors of a collated batch; None if it holds anything else."""
    import torch

    fields = [batch] if isinstance(batch, torch.Tensor) else list(batch.values() if isinstance(batch, dict) else batch)
    is_flat = type(batch) in (torch.Tensor, list, dict)
    return fields if is_flat and fields and all(type(field) is torch.Tensor for field in fields) else None


def _same(a: Any, b: Any) -> bool:
    import torch

    return a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)


def _states() -> tuple[Any, ...]:
    import sys

    import torch

    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    return bool((a[0] == b[0]).all()) and repr(a[1:]) == repr(b[1:])


def _restore(states: tuple[Any, ...]) -> None:
    import sys

    import torch

    torch.set_rng_state(states[0])
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


def _free_bytes() -> int:
    """Return the free memory of this machine, or 4 GiB if unknown."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 2**32
