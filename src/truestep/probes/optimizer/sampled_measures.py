"""Measures of sampled steps: the mixture of gradients, and the parameters that never change."""

from __future__ import annotations

from typing import Any

from truestep.events import Event, MixtureMeasured, ParametersUnchanged, Site, WindowMeasured
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values, stored
from truestep.probes.gradients.gradient_states import Counts, Panel, version
from truestep.probes.optimizer.fsdp import is_freed

_ELEMENTS = 16
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

    def look(self) -> None:
        """Emit these parameters."""
        scene = self._scene
        still: list[int] = []
        moved: list[int] = []
        frozen: list[int] = []
        for held in list(scene.ledger.by_id.values()):
            parameter = held.ref()
            if parameter is None or is_lazy(parameter):
                continue
            if held.base is None:
                held.base, held.base_version = _fingerprint(parameter), version(parameter)
            elif held.base_version != version(parameter) or held.base != _fingerprint(parameter):
                moved.append(held.number)
            elif parameter.requires_grad:
                still.append(held.number)
            if not parameter.requires_grad:
                frozen.append(held.number)
        step, found = scene.sampling.step, (tuple(still[:_MOST]), tuple(moved[:_MOST]), tuple(frozen[:_MOST]))
        if step < 3 or (step > _SETTLED and found == self._latest):
            return
        self._latest = found
        scene.emit(ParametersUnchanged(parameters=found[0], moved=found[1], frozen=found[2], steps=step))


def _fingerprint(parameter: Any) -> list[str]:
    local = stored(getattr(parameter, "_local_tensor", parameter))
    if not local.is_cpu or not local.numel() or not has_values(local) or is_freed(local):
        return []
    local = local.detach()
    flat = local.reshape(-1)
    values = flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS]
    return [repr(value) for value in values.tolist()]
