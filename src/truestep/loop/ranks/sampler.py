"""DataLoaders of the program in a run of several ranks: each rank must read a part of the samples."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader, DistributedSampler, IterableDataset

from truestep.errors import BadLoader


def check_sampler(loader: DataLoader[Any]) -> None:
    """Raise an error if every rank would read all samples of a DataLoader.

    Raises:
        BadLoader: its sampler does not divide the samples by rank.
    """
    if isinstance(loader.dataset, IterableDataset) or _divides(loader):
        return
    raise BadLoader(
        "a DataLoader without a DistributedSampler was given to a run of several processes, and each would read all "
        "samples",
        expected="expected samples that are divided over the ranks",
        remedy="pass its data set: run.loader(dataset, batch_size=...), which divides them",
    )


def begin_epoch(loader: DataLoader[Any], epoch: int) -> None:
    """Call `set_epoch` of a DistributedSampler, without which each epoch has the same order."""
    if isinstance(loader.sampler, DistributedSampler):
        loader.sampler.set_epoch(epoch)


def _divides(loader: DataLoader[Any]) -> bool:
    """Return True if a sampler knows its rank: torch's, or one of the program with the same attributes."""
    samplers = (loader.sampler, loader.batch_sampler)
    return any(hasattr(one, "rank") or hasattr(one, "num_replicas") for one in samplers)
