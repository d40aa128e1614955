"""Repeat the first batches in every step: can this model and loop learn them by heart?"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.harness.called_again import CalledAgain
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.streams import Streams, TrainingStream
from truestep.seams.patch import patch


class FirstBatches(Change):
    """Loaders of torch and of the toolkit repeat the first batches of their stream while gradients are enabled.

    The loader itself still runs, so epochs keep their lengths. Each batch is a copy, so in-place changes by the script
    do not accumulate. Under `torch.no_grad()` loaders yield their own batches. If no loader yields the batches of the
    first steps, the arguments of models are repeated instead (`called_again.py`).

    Attributes:
        samples: number of samples in the repeated batches of the first stream.
        fresh: batches, or calls of models, that were not repeated, other than those of the first stream.
        same: calls of models that had the first data already.
        loose: steps with a loss from targets that were not repeated.
        by_hand: 1 if calls were repeated instead of batches.

    Args:
        count: number of batches.
    """

    name = "first-batches"

    def __init__(self, count: int = 1) -> None:
        super().__init__()
        self.count = count
        self.samples = self.fresh = self.same = self.loose = self.by_hand = 0
        self._streams = Streams()
        self._calls = CalledAgain(count)

    def install(self, stack: ExitStack) -> None:
        import torch

        from truestep.loop.loading import feed as feed_module
        from truestep.loop.loading.loader import Loader

        feed = feed_module.__name__
        enabled = torch.is_grad_enabled

        def __next__(iterator: Any) -> Any:
            try:
                batch = next_of_torch(iterator)
            except StopIteration:
                self._streams.is_over(iterator)
                raise
            if not enabled() or type(iterator._dataset).__module__ == feed:  # the toolkit's loader, which is below
                return batch
            return self._instead(self._streams.of(iterator, iterator._dataset), batch)

        def epoch(loader: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
            batches = epoch_of_loader(loader, *args, **kwargs)

            def walk() -> Iterator[Any]:
                own = _Pass()
                for batch in batches:
                    yield self._instead(self._streams.of(own, loader), batch) if enabled() else batch
                self._streams.is_over(own)

            return walk()

        next_of_torch = seams.loader.wrap_next(stack, __next__)
        epoch_of_loader = patch(stack, Loader, "epoch", epoch)
        self._calls.install(stack)

    def counts(self) -> dict[str, int]:
        calls = self._calls
        if calls.applied + calls.same and not self.applied:
            of_calls = {name: getattr(calls, name) for name in ("applied", "samples", "fresh", "same", "loose")}
            return super().counts() | of_calls | {"by_hand": 1}
        return super().counts()

    def _instead(self, stream: TrainingStream, batch: Any) -> Any:
        """Return the batch to yield in place of the loader's batch."""
        self._calls.drew = True
        if len(stream.kept) < self.count:
            stream.kept.append(copy.deepcopy(batch))
            if stream is next(iter(self._streams)):
                self.samples += _size(batch)
            else:
                self.fresh += 1
            return batch
        stream.given += 1
        self.applied += 1
        return copy.deepcopy(stream.kept[(stream.given - 1) % self.count])


class _Pass:
    """Represents one pass over a loader of the toolkit."""


def _size(batch: Any) -> int:
    """Return the number of samples in a batch; 0 if unknown."""
    if isinstance(batch, dict):
        batch = next(iter(batch.values()), None)
    elif isinstance(batch, tuple | list) and batch and hasattr(batch[0], "shape"):
        batch = batch[0]
    try:
        return len(batch)
    except TypeError:
        return 0
