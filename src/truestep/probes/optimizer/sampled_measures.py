"""Measures of sampled steps: the mixture of gradients, and the parameters that never change."""

from __future__ import annotations

import math
from typing import Any

from truestep.events import Event, MixtureMeasured, ParametersUnchanged, Site, WindowMeasured
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values, stored
from truestep.probes.gradients.gradient_states import Counts, Held, Panel, version
from truestep.probes.optimizer.fsdp import is_freed

_ELEMENTS = 16
_LEAST_RANDOM = 16
_MOST = 4000
_SETTLED = 1000
"""Steps after which unchanged parameters are reported again only if their set differs."""


def mixture(scene: Scene, panel: Panel, counts: Counts, site: Site | None) -> None:
    """Emit the ratio of the gradient at the step to the gradient of a single backward pass."""
    backwards = len(panel.shares)
    if not counts.mixed and backwards < 2:
        return
    ratio = scene.ledger.ratio(panel)
    if ratio is None:
        return
    ratio = float(f"{ratio:.3g}")
    event: Event = (
        MixtureMeasured(optimizer=panel.number, ratio=ratio, site=site)
        if counts.mixed
        else WindowMeasured(optimizer=panel.number, ratio=ratio, backwards=backwards, site=site)
    )
    scene.emit(event)


def finite_gradients(scene: Scene, panel: Panel) -> bool:
    """Return True if an optimizer has gradients and all of them are finite."""
    found = False
    for held in panel.everything:
        parameter = held.ref()
        grad = None if parameter is None else parameter.grad
        if grad is None or not has_values(grad):
            continue
        found = True
        if not bool(scene.torch.isfinite(getattr(grad, "_local_tensor", grad).detach()).all()):
            return False
    return found


class Unchanged:
    """Finds the trainable parameters that have kept their values since they were first examined.

    It compares version counters, and on the CPU also some elements, which shows writes that bypass the counter.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._latest: tuple[tuple[int, ...], ...] = ()
        """The parameters in the latest event."""
        self._random: dict[int, bool] = {}
        self.moved: set[int] = set()
        """Parameters with other values than at first, of those alive."""
        self.stayed: dict[int, int] = {}
        """The others, with the number of steps since their values were first read."""

    def look(self) -> None:
        """Emit these parameters."""
        scene = self._scene
        still: list[int] = []
        moved: list[int] = []
        frozen: list[int] = []
        self.stayed.clear()
        for held in list(scene.ledger.by_id.values()):
            parameter = held.ref()
            if parameter is None or is_lazy(parameter):
                continue
            if held.base is None:
                first_values(held, parameter, scene.sampling.step)
            elif held.base_version != version(parameter) or held.base != _fingerprint(parameter):
                moved.append(held.number)
            else:
                self._examine(held, parameter)
                self.stayed[held.number] = scene.sampling.step - held.base_step
                if parameter.requires_grad:
                    still.append(held.number)
            if not parameter.requires_grad:
                frozen.append(held.number)
        self.moved = set(moved)
        random = tuple(number for number, is_random in self._random.items() if is_random)
        step = scene.sampling.step
        found = tuple(still[:_MOST]), tuple(moved[:_MOST]), tuple(frozen[:_MOST]), random
        if step < 3 or (step > _SETTLED and found == self._latest):
            return
        self._latest = found
        scene.emit(ParametersUnchanged(parameters=found[0], moved=found[1], frozen=found[2], random=random, steps=step))

    def _examine(self, held: Held, parameter: Any) -> None:
        """Record once whether an unchanged parameter that is frozen or outside of optimizers has random values."""
        outside = held.panel is None or not held.panel.number or not parameter.requires_grad
        if outside and held.number not in self._random and len(self._random) < _MOST:
            self._random[held.number] = is_initial(parameter)


def is_initial(weight: Any) -> bool:
    """Return True if a weight has the spread of the random numbers that linear layers, convolutions or embeddings get.

    Training and other initialisations leave this range: the weights of linear layers and convolutions are uniform
    within one over the root of the number of inputs, those of embeddings have a variance of 1.
    """
    local = stored(getattr(weight, "_local_tensor", weight))
    if local.dim() < 2 or local.numel() < _LEAST_RANDOM or not has_values(local) or is_freed(local):
        return False
    if not local.is_floating_point():
        return False
    some = local.detach().reshape(-1)[:_MOST].float()
    largest, square = float(some.abs().max()), float(some.square().mean())
    bound, near = math.sqrt(local.shape[0] / local.numel()), 4 / math.sqrt(len(some))
    uniform = largest <= bound * 1.001 and abs(3 * square / bound**2 - 1) < near
    return uniform or (local.dim() == 2 and abs(square - 1) < 1.5 * near and abs(float(some.mean())) < near)


def first_values(held: Held, parameter: Any, step: int) -> None:
    """Record some values of a parameter, to find out later whether it has moved."""
    if held.base is None and not is_lazy(parameter):
        held.base, held.base_version, held.base_step = _fingerprint(parameter), version(parameter), step


def _fingerprint(parameter: Any) -> list[str]:
    local = stored(getattr(parameter, "_local_tensor", parameter))
    if not local.is_cpu or not local.numel() or not has_values(local) or is_freed(local):
        return []
    local = local.detach()
    flat = local.reshape(-1)
    values = flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS]
    return [repr(value) for value in values.tolist()]
