"""Weights of a model that is first called late: nothing has written to them since they were built, or copied early."""

from __future__ import annotations

from truestep.probes.context.scene import Scene
from truestep.probes.gradients.gradient_states import Held
from truestep.probes.optimizer.sampled_measures import fingerprint, is_initial

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
    for one in held[: 2 * _MOST]:
        weight = one.ref()
        if weight is None or not weight.is_cpu or not is_initial(weight):
            continue
        values = fingerprint(weight)
        origins = [
            other
            for other in list(scene.ledger.by_id.values())
            if other.number not in mine and other.base and (them := other.ref()) is not None and them.is_cpu
            if them.shape == weight.shape
        ]
        early = any(other.base == values != fingerprint(other.ref()) for other in origins)
        known = [texts for other in origins for texts in (other.base or [], fingerprint(other.ref()))]
        if early or not any(_is_near(values, texts) for texts in known):
            fresh.append(one.number)
    return tuple(fresh)


def _is_near(mine: list[str], theirs: list[str]) -> bool:
    pairs = [(float(one), float(other)) for one, other in zip(mine, theirs, strict=False)]
    return sum(abs(one - other) for one, other in pairs) < _NEAR * sum(abs(one) for one, _ in pairs)
