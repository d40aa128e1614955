"""The remedy for generators that are copied to every worker: each worker seeds its copy again in every epoch."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch


class OwnGenerators(Change):
    """Generators of numpy, python and torch that a data set holds are seeded in each worker by the seed torch gave it.

    Only with gradients enabled, so that an evaluation keeps its numbers, and not if the script passes a
    `worker_init_fn`. Generators in a data set behind `Subset` and similar wrappers count too.
    """

    name = "own-generators"
    remedies = ("worker-randomness-duplicated",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.utils.data.dataloader import DataLoader

        def _get_iterator(loader: Any) -> Any:
            mends = loader.num_workers > 0 and loader.worker_init_fn is None and torch.is_grad_enabled()
            if not mends or not any(_generators(loader.dataset)):
                return get_iterator(loader)
            loader.worker_init_fn = seed_generators
            try:
                iterator = get_iterator(loader)
            finally:
                loader.worker_init_fn = None
            self.applied += 1
            return iterator

        get_iterator = patch(stack, DataLoader, "_get_iterator", _get_iterator)


def seed_generators(worker: int) -> None:
    """Seed the generators of a worker's copy of the data set with the seed of the worker."""
    import torch

    info = torch.utils.data.get_worker_info()
    if info is not None:
        for renew in list(_generators(info.dataset)):
            renew(torch.initial_seed())


def _generators(dataset: Any) -> Iterator[Callable[[int], None]]:
    """Yield a function for each generator of a data set that seeds it."""
    import torch

    numpy = sys.modules.get("numpy")
    while dataset is not None:
        held = getattr(dataset, "__dict__", {})
        for name, value in held.items():
            if isinstance(value, torch.Generator):
                yield partial(_seed_torch, value)
            elif isinstance(value, random.Random):
                yield value.seed
            elif numpy is not None and isinstance(value, numpy.random.RandomState):
                yield partial(_seed_legacy, value)
            elif numpy is not None and isinstance(value, numpy.random.Generator):
                yield partial(_replace, held, name, value)
        dataset = held.get("dataset")


def _seed_torch(generator: Any, seed: int) -> None:
    generator.manual_seed(seed)


def _seed_legacy(state: Any, seed: int) -> None:
    state.seed(seed % 2**32)


def _replace(held: dict[str, Any], name: str, generator: Any, seed: int) -> None:
    """Replace a generator of NumPy, which cannot be seeded again, by a new one."""
    held[name] = type(generator)(type(generator.bit_generator)(seed))
