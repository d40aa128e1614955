"""Run with another seed: add an offset to the script's seeds, and seed scripts that set none."""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch

_FAR = 1_000_003
"""Distance of the offsets: large, so that repetitions share no seeds."""


class Seeded(Change):
    """The global generators of torch, Python and NumPy start from other seeds.

    They are seeded when torch is imported, so that a script without seeds runs the same in two variants of one
    repetition; and seeds that the script sets are shifted. Generators that the script creates keep their seeds: data
    splits and similar draws stay the same.

    Args:
        offset: number of the repetition; 0 keeps the script's own seeds.
        start: first seed, for scripts that set none; None derives it from the offset.
    """

    name = "seeded"

    def __init__(self, offset: int = 0, start: int | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.start = offset * _FAR if start is None else start

    def install(self, stack: ExitStack) -> None:
        import torch

        seed_torch = patch(stack, torch, "manual_seed", self._moved(torch.manual_seed))
        seed_python = patch(stack, random, "seed", self._moved(random.seed))
        seed_torch(self.start)
        seed_python(self.start)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            patch(stack, numpy.random, "seed", self._moved(numpy.random.seed))(self.start)

    def _moved(self, seed_with: Any) -> Any:
        def seed(value: Any = None, *args: Any, **kwargs: Any) -> Any:
            if isinstance(value, int) and not isinstance(value, bool):
                self.applied += 1
                value = (value + self.offset * _FAR) % 2**32
            return seed_with(value, *args, **kwargs)

        return seed
