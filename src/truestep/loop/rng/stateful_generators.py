"""Random generators of torch, numpy and python as parts of a checkpoint."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from truestep.errors import BadPart
from truestep.loop.checkpoint.stateful import Stateful
from truestep.loop.rng.seed import numpy


class Generator:
    """A random generator with `state_dict` and `load_state_dict`.

    Args:
        get: returns its state.
        set_: restores a state.
    """

    def __init__(self, get: Callable[[], Any], set_: Callable[[Any], Any]) -> None:
        self._get, self._set = get, set_

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"state": self._get()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state."""
        self._set(state["state"])


def stateful(part: Any) -> Stateful:
    """Return an object with `state_dict` and `load_state_dict`: the part itself, or an adapter for a random generator.

    Args:
        part: any object with `state_dict` and `load_state_dict`, a `torch.Generator`, a `random.Random`, a
            `numpy.random.Generator` or `RandomState`.

    Raises:
        BadPart: the part has another type.

    Example:
        >>> chance = random.Random(3)
        >>> kept = stateful(chance)
        >>> state = kept.state_dict()
        >>> first = chance.random()
        >>> kept.load_state_dict(state)
        >>> chance.random() == first
        True
    """
    if isinstance(part, Stateful):
        return part
    if isinstance(part, torch.Generator):
        return Generator(part.get_state, lambda state: part.set_state(state.cpu()))
    if isinstance(part, random.Random):
        return Generator(part.getstate, lambda state: part.setstate((state[0], tuple(state[1]), state[2])))
    if numpy is not None and isinstance(part, numpy.random.RandomState):
        return Generator(lambda: part.get_state(legacy=False), part.set_state)
    if numpy is not None and isinstance(part, numpy.random.Generator):
        bits = part.bit_generator
        return Generator(lambda: bits.state, lambda state: setattr(bits, "state", state))
    raise BadPart(
        f"{type(part).__name__} cannot be saved in a checkpoint",
        expected="expected an object with state_dict() and load_state_dict(), or a random generator",
        remedy="keep plain values in run.state instead",
    )
