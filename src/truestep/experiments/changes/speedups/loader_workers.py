"""Arguments of torch's DataLoader: workers, how they live and read ahead, pinned memory, larger batches."""

from __future__ import annotations

import functools
import inspect
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.speedups.flags import processors
from truestep.experiments.changes.speedups.speedup import Tuning
from truestep.seams.patch import patch

_MOST = 4
"""Workers of a loader: more of them rarely give more, and each holds the data set."""


class LoaderArguments(Tuning):
    """Gives loaders other arguments where the script's own leave it open."""

    def install(self, stack: ExitStack) -> None:
        from torch.utils.data import DataLoader

        begin = DataLoader.__init__
        signature = inspect.signature(begin)

        @functools.wraps(begin)
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(loader, *args, **kwargs)
            except TypeError:
                begin(loader, *args, **kwargs)
                return
            given = bound.arguments
            others = self.others(given)
            if others:
                self.applied += 1
                given.update(others)
            begin(*bound.args, **bound.kwargs)

        patch(stack, DataLoader, "__init__", __init__)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that are otherwise.

        Args:
            given: by the script, by name.
        """
        raise NotImplementedError


class LoaderWorkers(LoaderArguments):
    """Loaders of map-style data sets without workers get some. A stream, which each of them would read, gets none."""

    name = "loader-workers"
    summary = f"num_workers of DataLoader: one per processor, {_MOST} at most"
    lines = f"DataLoader(..., num_workers={min(_MOST, processors())})"
    excludes = ("whole-batches", "samples-once")

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        from torch.utils.data import IterableDataset

        if given.get("num_workers") or isinstance(given["dataset"], IterableDataset) or _of_toolkit(given["dataset"]):
            return {}
        return {"num_workers": min(_MOST, processors())}


class PersistentWorkers(LoaderArguments):
    """Workers live on between epochs.

    Args:
        draws: whether a number is drawn at each epoch, as without it: then batches are the same, and losses comparable.
    """

    name = "persistent-workers"
    summary = "workers of DataLoader live on between epochs"
    lines = "DataLoader(..., persistent_workers=True)"
    follows = ("loader-workers",)
    excludes = ("whole-batches", "samples-once")
    checked = {"draws": True}

    def __init__(self, draws: bool = False) -> None:
        super().__init__()
        self._draws = draws

    def install(self, stack: ExitStack) -> None:
        super().install(stack)
        if not self._draws:
            return
        import torch
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        def _reset(iterator: Any, loader: Any, first_iter: bool = False) -> None:
            if not first_iter:
                torch.empty((), dtype=torch.int64).random_(generator=loader.generator)
            reset(iterator, loader, first_iter)

        reset = patch(stack, _MultiProcessingDataLoaderIter, "_reset", _reset)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"persistent_workers": True} if given.get("num_workers") and not given.get("persistent_workers") else {}


class Prefetch(LoaderArguments):
    """Each worker reads twice as many batches ahead."""

    name = "prefetch"
    summary = "prefetch_factor=4 of DataLoader: workers read further ahead"
    lines = "DataLoader(..., prefetch_factor=4)"
    follows = ("loader-workers",)
    excludes = ("whole-batches", "samples-once")

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"prefetch_factor": 4} if given.get("num_workers") and given.get("prefetch_factor") is None else {}


class PinMemory(LoaderArguments):
    """Batches lie in pinned memory, from which copies to the GPU are faster."""

    name = "pin-memory"
    summary = "pin_memory=True of DataLoader: faster copies to the GPU"
    lines = "DataLoader(..., pin_memory=True)"
    accelerator = True

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        return {} if given.get("pin_memory") or _of_toolkit(given["dataset"]) else {"pin_memory": True}


class LargerBatch(LoaderArguments):
    """Batches of twice as many samples: another training, with its own best learning rate."""

    name = "larger-batch"
    summary = "twice the batch_size of DataLoader: another training, compared by samples per second"
    lines = "# another training: its learning rate is another one\nDataLoader(..., batch_size=2 * batch_size)"
    on_request = True
    tolerance = float("inf")
    factor = 2.0

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        size = given.get("batch_size", 1)
        return {"batch_size": 2 * size} if isinstance(size, int) and given.get("batch_sampler") is None else {}


def _of_toolkit(dataset: Any) -> bool:
    """Return True for the loader inside the toolkit's loader, which the arguments of `run.loader` set."""
    from truestep.loop.loading import feed

    return type(dataset).__module__ == feed.__name__
