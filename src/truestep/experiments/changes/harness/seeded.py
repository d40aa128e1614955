"""Another seed: the script's own, moved by an offset; one is given where the script sets none."""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch

_FAR = 1_000_003
"""Offsets lie so far apart that seeds of one repetition are not those of another."""


class Seeded(Change):
    """The global generators of torch, python and numpy begin elsewhere.

    They are seeded when torch is imported, so that a script without seeds is the same in two variants of one
    repetition; and seeds that the script sets are moved. Generators that the script makes itself keep their seeds: what
    they split or draw stays the same.

    Args:
        offset: which repetition; 0 keeps the script's own seeds.
        start: what generators begin with that the script does not seed; None for what follows from the offset.
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
