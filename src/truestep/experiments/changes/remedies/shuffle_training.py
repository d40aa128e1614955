"""The remedy for training data that is sorted by class: shuffle it in every pass."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change

_LEAST_BATCHES = 4


class _Pass:
    """One pass over a loader, with the order of its labels."""

    def __init__(self, loader: Any) -> None:
        self.loader = weakref.ref(loader)
        self.sorted = True
        self.batches = self.steps = 0
        self.lowest = self.highest = None
        self.waits = False


class ShuffleTraining(Change):
    """A loader that reads its data set from front to back draws an order for every pass, from the second pass on.

    The first pass must justify it: an optimizer stepped between its batches, and their labels, the last entry of each
    batch, never decreased. The order is drawn by a separate generator.
    """

    name = "shuffle-training"
    remedies = ("training-data-not-shuffled",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.utils.data import RandomSampler, SequentialSampler

        passes: MutableMapping[Any, _Pass] = weakref.WeakKeyDictionary()
        shuffled: MutableMapping[Any, None] = weakref.WeakKeyDictionary()

        def __iter__(loader: Any) -> Any:
            iterator = iter_of_torch(loader)
            batches = getattr(loader, "batch_sampler", None)
            if type(getattr(batches, "sampler", None)) is SequentialSampler:
                passes[iterator] = _Pass(loader)
            self.applied += loader in shuffled
            return iterator

        def drew(iterator: Any, batch: Any) -> None:
            if iterator in passes:
                _look(passes[iterator], batch)

        def ended(iterator: Any) -> None:
            passed = passes.pop(iterator, None)
            loader = passed.loader() if passed is not None else None
            if loader is not None and _is_sorted(passed):
                generator = torch.Generator().manual_seed(torch.initial_seed())
                loader.batch_sampler.sampler = RandomSampler(loader.dataset, generator=generator)
                shuffled[loader] = None

        def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
            for passed in passes.values():
                passed.steps += passed.waits
                passed.waits = False

        iter_of_torch = seams.loader.wrap_iter(stack, __iter__)
        seams.loader.watch(stack, drew=drew, ended=ended)
        seams.step.watch(stack, after=stepped)


def _look(passed: Any, batch: Any) -> None:
    """Record whether the labels of a batch continue the sorted order."""
    import torch

    labels = batch[-1] if isinstance(batch, list | tuple) and batch else None
    passed.waits = True
    if not isinstance(labels, torch.Tensor) or labels.dim() != 1 or labels.is_floating_point() or not labels.numel():
        passed.sorted = False
        return
    values = labels.tolist()
    if values != sorted(values) or (passed.highest is not None and values[0] < passed.highest):
        passed.sorted = False
        return
    passed.lowest = values[0] if passed.lowest is None else passed.lowest
    passed.highest = values[-1]
    passed.batches += 1


def _is_sorted(passed: Any) -> bool:
    enough = passed.batches >= _LEAST_BATCHES and passed.steps >= passed.batches - 1
    return bool(passed.sorted and enough and passed.lowest != passed.highest)
