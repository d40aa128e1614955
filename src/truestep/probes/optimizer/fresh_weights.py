"""Weights of a model that is first called late: nothing has written to them since they were built, or copied early."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import Held
from truestep.probes.gradients.random_values import is_initial
from truestep.probes.optimizer.sampled_measures import fingerprint

_LEAST_STEPS = 10
_MOST = 64
"""Weights of a model that are looked at."""
_NEAR = 0.5
"""Difference from another weight, relative to its values, below which a weight may come from it, as an average."""


def fresh_weights(scene: Scene, held: list[Held]) -> tuple[int, ...]:
    """Return the weights with random values of an initialisation; none for a model that is called from the start.

    Weights are also fresh if they equal the first values of a trained parameter exactly: a copy made before training.
    Other weights that are near those of a trained parameter come from it.
    """
    if scene.sampling.step < _LEAST_STEPS:
        return ()
    fresh = []
    mine = {one.number for one in held}
    origins: dict[Any, _Origins] = {}
    for one in held[: 2 * _MOST]:
        weight = one.ref()
        if weight is None or not weight.is_cpu or not is_initial(weight):
            continue
        values = fingerprint(weight)
        form = weight.shape, len(values)
        if form not in origins:
            origins[form] = _Origins(scene, *form, mine)
        if origins[form].are_apart(values):
            fresh.append(one.number)
    return tuple(fresh)


class _Origins:
    """The first and the present values of the parameters of one shape, each read once.

    Args:
        scene: the scene.
        shape: the shape.
        count: number of values that are compared.
        mine: numbers of other parameters, which are left out.
    """

    def __init__(self, scene: Scene, shape: Any, count: int, mine: set[int]) -> None:
        self._torch = scene.torch
        self._early: set[tuple[str, ...]] = set()
        """First values of parameters that have others now."""
        known = set()
        for other in list(scene.ledger.by_id.values()):
            if other.number in mine or not other.base or (them := other.ref()) is None or not them.is_cpu:
                continue
            if them.shape == shape and them.is_floating_point():
                first, now = tuple(other.base), tuple(fingerprint(them))
                known |= {first, now}
                if first != now:
                    self._early.add(first)
        self._known = self._rows([one for one in known if len(one) == count])

    def _rows(self, texts: Iterable[Iterable[str]]) -> Any:
        rows = [[float(text) for text in one] for one in texts]
        return self._torch.tensor(rows, dtype=self._torch.float64, device="cpu")

    def are_apart(self, texts: list[str]) -> bool:
        """Return True if values are not near those of a parameter, or are the first ones of a trained parameter."""
        if tuple(texts) in self._early or not len(self._known):
            return True
        values = self._rows([texts])
        return not bool(((self._known - values).abs().sum(1) < _NEAR * values.abs().sum()).any())
