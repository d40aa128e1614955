"""The training sees its first batches again and again: can this model and loop learn them by heart?"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes._change import Change
from truestep.probes._patch import patch

_MOST_PLAIN = 8
"""Lists that are held: a script that makes a new one in every epoch does not pile them up."""


class FirstBatches(Change):
    """Loaders of torch and of the toolkit give the first batches of their data set for ever, while gradients are on.

    The loader itself goes on as it did, so epochs have their lengths. Each batch given is a copy: what the script does
    to it in place does not come back. Under `torch.no_grad()` loaders give what they always give.

    Args:
        count: how many batches.
    """

    name = "first-batches"

    def __init__(self, count: int = 1) -> None:
        super().__init__()
        self.count = count
        self.samples = 0
        """In all of the batches that are given again."""
        self._kept: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._given: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._plain: dict[int, tuple[Any, _Anchor]] = {}

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        from truestep.loop import feed as feed_module
        from truestep.loop.loader import Loader

        feed = feed_module.__name__
        enabled = torch.is_grad_enabled

        def __next__(iterator: Any) -> Any:
            batch = next_of_torch(iterator)
            if not enabled() or type(iterator._dataset).__module__ == feed:  # the toolkit's loader, which is below
                return batch
            return self.instead(self._key(iterator._dataset), batch)

        def epoch(loader: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            batches = epoch_of_loader(loader, *args, **kwargs)

            def walk() -> Iterator[Any]:
                for batch in batches:
                    yield self.instead(loader, batch) if enabled() else batch

            return walk()

        next_of_torch = patch(stack, _BaseDataLoaderIter, "__next__", __next__)
        epoch_of_loader = patch(stack, Loader, "epoch", epoch)

    def instead(self, key: Any, batch: Any) -> Any:
        """Return what is given instead of a batch."""
        kept = self._kept.setdefault(key, [])
        if len(kept) < self.count:
            kept.append(copy.deepcopy(batch))
            self.samples += _size(batch)
            return batch
        number = self._given.get(key, self.count)
        self._given[key] = number + 1
        self.applied += 1
        return copy.deepcopy(kept[number % self.count])

    def _key(self, dataset: Any) -> Any:
        """Return what stands for the data: loaders that are made anew in every epoch are the same by their data set."""
        try:
            weakref.ref(dataset)
            hash(dataset)
        except TypeError:  # a list: it is held, so that its address is not another one's
            if id(dataset) not in self._plain:
                self._plain[id(dataset)] = (dataset, _Anchor())
                if len(self._plain) > _MOST_PLAIN:
                    del self._plain[next(iter(self._plain))]
            return self._plain[id(dataset)][1]
        return dataset


class _Anchor:
    """Stands for a data set that cannot be referred to weakly."""


def _size(batch: Any) -> int:
    """Return the samples in a batch, 0 where nobody can tell."""
    if isinstance(batch, dict):
        batch = next(iter(batch.values()), None)
    elif isinstance(batch, tuple | list) and batch and hasattr(batch[0], "shape"):
        batch = batch[0]
    try:
        return len(batch)
    except TypeError:
        return 0
