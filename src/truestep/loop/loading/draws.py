"""Detection of the global generators that a data set draws from; the others need no seed for every sample.

Seeding all three generators takes 7 us per sample, more than reading a cheap sample. torch's takes 1 us of it and is
always seeded, since data sets also read `torch.initial_seed()`. For python's and numpy's, the first samples show
whether their state changes. From then on, a generator that is used is seeded for each sample, the others only for each
batch, and compared after it. If one of those has changed, the batch is read again with that one seeded per sample too.
So the randomness of a sample always depends on its own seed alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch

from truestep.loop.rng.seed import numpy

LOOKED_AT = 32
"""Number of first samples with a comparison of the generators after each."""
SMALL = 16
"""Size of batch below which seeding everything is faster."""

SEEDS: dict[str, Callable[[int], Any]] = {"python": random.seed, "torch": torch.default_generator.manual_seed}
if numpy is not None:
    SEEDS["numpy"] = numpy.random.seed


class Draws:
    """Reads samples, each under its own seed, and detects the generators that they draw from."""

    def __init__(self) -> None:
        self._drawn = {"torch"}
        self._looked = 0

    def read(
        self, get: Callable[[Any], Any], indices: Sequence[int], numbers: Callable[[], list[int]], whole: int
    ) -> list[Any]:
        """Return `[get(index) for index in indices]`, each as if all generators were seeded with its number.

        Args:
            get: returns the sample at an index.
            indices: indices of the samples.
            numbers: returns the seed of each sample, 32 bits.
            whole: seed per batch for generators that samples do not draw from, 32 bits.
        """
        if len(indices) < SMALL or self._looked < LOOKED_AT:
            return self._looked_at(get, indices, numbers())
        while True:
            for seed in SEEDS.values():
                seed(whole)
            idle = SEEDS.keys() - self._drawn
            before = {name: _STATES[name]() for name in idle}
            seeds = [SEEDS[name] for name in self._drawn]
            samples = []
            for index, number in zip(indices, numbers(), strict=True):
                for seed in seeds:
                    seed(number)
                samples.append(get(index))
            moved = {name for name in idle if before[name] != _STATES[name]()}
            if not moved:
                return samples
            self._drawn |= moved

    def _looked_at(self, get: Callable[[Any], Any], indices: Sequence[int], numbers: list[int]) -> list[Any]:
        samples = []
        for index, number in zip(indices, numbers, strict=True):
            for seed in SEEDS.values():
                seed(number)
            before = {}
            if self._looked < LOOKED_AT:
                self._looked += 1
                before = {name: _STATES[name]() for name in SEEDS.keys() - self._drawn}
            samples.append(get(index))
            self._drawn |= {name for name, state in before.items() if state != _STATES[name]()}
        return samples


def _numpy_state() -> object:
    state = numpy.random.get_state(legacy=False)
    own: Any = dict(state["state"])
    key = own.pop("key", None)
    return str(
        (own, state["bit_generator"], state["has_gauss"], state["gauss"])
    ), None if key is None else key.tobytes()


_STATES: dict[str, Callable[[], object]] = {"python": random.getstate, "numpy": _numpy_state}
