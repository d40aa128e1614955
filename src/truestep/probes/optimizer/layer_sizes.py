"""Gradients and updates of the weights of the layers, at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import LayersMeasured, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held, Panel
from truestep.probes.optimizer.stepped import readable

_MOST = 48
"""Weights of an optimizer that are measured, in equal distances if it has more."""
_ELEMENTS = 4096
"""Elements of a weight that are read, the same ones every time."""
_ROWS = 64
"""Rows of a gradient that are read for those of zeros, the same ones every time."""


class LayerSizes:
    """Measures weights with two or more dimensions: one for each layer."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._chosen: dict[int, tuple[int, list[Held]]] = {}
        """Optimizer to the number of its parameters and those that are measured."""
        self._before: list[tuple[Held, Any, Any, Any]] = []
        """Each weight with some values of it and of its gradient, and the share of rows of the gradient with zeros."""

    def before(self, panel: Panel) -> None:
        """Copy some values of the weights and of their gradients."""
        self._before = []
        for held in self._of(panel):
            weight = held.ref()
            if weight is None or not readable(weight):
                continue
            gradient = weight.grad
            if gradient is not None and str(gradient.layout) == "torch.strided":
                values = _some(weight).clone(), _some(gradient).float()
                self._before.append((held, *values, _share_of_zeros(gradient.detach())))

    def after(self, panel: Panel, site: Site | None) -> None:
        """Emit the sizes: one read from the device for all of them."""
        before, self._before = self._before, []
        numbers, sizes = [], []
        for held, values, gradient, idle in before:
            weight = held.ref()
            if weight is None or not has_values(weight):
                continue
            now = _some(weight)
            if now.shape == values.shape:
                numbers.append(held.number)
                moved = (now - values).float().norm() / values.float().norm().clamp_min(1e-30)
                size = gradient.square().mean().sqrt()
                sizes += [size.to(moved.device), moved, idle.to(moved.device)]
        if not sizes:
            return
        devices = {size.device for size in sizes}
        together = sizes if len(devices) == 1 else [size.cpu() for size in sizes]
        read = [float(f"{value:.3g}") for value in self._scene.torch.stack(together).tolist()]
        self._scene.tell(
            LayersMeasured,
            optimizer=panel.number,
            parameters=tuple(numbers),
            gradients=tuple(read[::3]),
            updates=tuple(read[1::3]),
            site=site,
            **({"idle": tuple(read[2::3])} if any(read[2::3]) else {}),  # kept for each sampled step
        )

    def _of(self, panel: Panel) -> list[Held]:
        """Return the weights of an optimizer that are measured."""
        count, chosen = self._chosen.get(panel.number, (-1, []))
        if count != len(panel.everything):
            weights = [
                held
                for held in panel.everything
                if not held.flattened and (weight := held.ref()) is not None and weight.dim() > 1
            ]
            last = len(weights) - 1
            chosen = (
                [weights[round(place * last / (_MOST - 1))] for place in range(_MOST)] if last >= _MOST else weights
            )
            self._chosen[panel.number] = len(panel.everything), chosen
        return chosen


def _some(tensor: Any) -> Any:
    """Return a view of some elements, the same ones every time."""
    flat = tensor.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS]


def _share_of_zeros(gradient: Any) -> Any:
    """Return the share of rows, one for each unit of a layer, in which every element of the gradient is zero."""
    rows = gradient[:: max(1, len(gradient) // _ROWS)][:_ROWS]
    return 1 - (rows.flatten(1) != 0).any(dim=1).float().mean()
