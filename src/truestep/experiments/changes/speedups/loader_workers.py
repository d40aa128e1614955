"""Workers of torch's DataLoader: their number, their lifetime and their prefetching."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.loader_arguments import LoaderArguments, is_of_toolkit
from truestep.experiments.changes.parts.speedup import Stage
from truestep.experiments.changes.speedups.flags import processors
from truestep.seams.patch import patch

_MOST = 4
"""Workers of a loader: more of them rarely gain more, and each holds the data set."""


class PersistentWorkers(LoaderArguments):
    """Workers stay alive between epochs.

    Args:
        draws: True draws one number per epoch, as without it: then batches are equal, and losses can be compared.
    """

    name = "persistent-workers"
    summary = "workers of DataLoader live on between epochs"
    lines = "DataLoader(..., persistent_workers=True)"
    combines = True
    follows = ("loader-workers",)
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
    """Each worker prefetches twice as many batches."""

    name = "prefetch"
    summary = "prefetch_factor=4 of DataLoader: workers read further ahead"
    lines = "DataLoader(..., prefetch_factor=4)"
    combines = True
    follows = ("loader-workers",)

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        return {"prefetch_factor": 4} if given.get("num_workers") and given.get("prefetch_factor") is None else {}


class LoaderWorkers(LoaderArguments):
    """Loaders of map-style data sets without workers get workers. An iterable data set, which each worker would read
    in full, gets none.
    """

    name = "loader-workers"
    summary = f"num_workers of DataLoader: one per processor, {_MOST} at most"
    lines = f"DataLoader(..., num_workers={min(_MOST, processors())})"
    priority = 80
    stage = Stage.WORKERS  # persistent-workers and prefetch see the new number of workers

    def others(self, given: dict[str, Any]) -> dict[str, Any]:
        from torch.utils.data import IterableDataset

        dataset = given["dataset"]
        if given.get("num_workers") or isinstance(dataset, IterableDataset) or is_of_toolkit(dataset):
            return {}
        return {"num_workers": min(_MOST, processors())}
