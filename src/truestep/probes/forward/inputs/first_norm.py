"""Inputs of the first batch normalisation of an evaluated model, next to its statistics, which a file has as well."""

from __future__ import annotations

from typing import Any

from truestep.events import FirstNormRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import is_transformed
from truestep.probes.forward.model import Model

_READS = 3
_SETTLED = 0.9
"""Least share of the running statistics that batches have written."""
_LARGEST = 1 << 24
_MOST_ROWS = 16
_LEAST_VALUES = 16
_LEAST_DIMS = 2


class FirstNorm:
    """Emits `FirstNormRead`, for a few calls of each model.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._reads: dict[int, int] = {}
        self._waiting: Model | None = None
        self._facts: dict[str, Any] = {}

    def begins(self, model: Model) -> bool:
        """Handle the start of a call without gradients; return True if its first batch normalisation is to be read."""
        self._waiting, self._facts = None, {}
        module: Any = model.ref()
        read = self._reads.get(model.number, 0)
        if read >= _READS or module is None or module.training:
            return False
        if not any("BatchNorm" in kind for kind, _ in model.sensitive):
            return False
        self._reads[model.number] = read + 1
        self._waiting = model
        return True

    def met(self, layer: Any, args: tuple[Any, ...]) -> None:
        """Compare the input of the first layer that runs with its statistics."""
        model, self._waiting = self._waiting, None
        given: Any = args[0] if args else None
        if model is None or type(given) is not self._scene.torch.Tensor or not _is_readable(given) or layer.training:
            return
        share = _written(layer)
        if share < _SETTLED or not has_values(layer.running_mean):
            return
        with self._scene.sampling.timed(given):
            rows = given.detach()[:: max(1, len(given) // _MOST_ROWS)].transpose(0, 1).flatten(1).float()
            means, spreads = rows.mean(1), rows.std(1, correction=0)
            before, spread = layer.running_mean, layer.running_var.sqrt() + layer.eps
            self._facts = {
                "model": model.number,
                "layer": _name(model, layer),
                "distance": _rounded(((means - before).abs() / spread).median()),
                "ratio": _rounded((spreads / spread).median()) if rows.shape[1] >= _LEAST_VALUES else 1.0,
                "mean": _rounded(means.mean()),
                "spread": _rounded(spreads.mean()),
                "before": _rounded(before.mean()),
                "before_spread": _rounded(spread.mean()),
            }

    def end(self, site: Site | None) -> None:
        """Emit the comparison of the call that ends."""
        facts, self._facts = self._facts, {}
        if facts:
            self._scene.tell(FirstNormRead, site=site, **facts)


def _written(layer: Any) -> float:
    """Return the share of the running statistics that batches have written."""
    count, mean = layer.num_batches_tracked, layer.running_mean
    if count is None or mean is None or not has_values(mean) or not mean.is_cpu:
        return 0.0
    if layer.momentum is None:
        return float(count > 0)
    return float(1 - (1 - layer.momentum) ** int(count))


def _is_readable(given: Any) -> bool:
    dims = given.dim() >= _LEAST_DIMS and 0 < given.numel() <= _LARGEST
    readable = dims and given.is_cpu and has_values(given) and given.is_floating_point()
    return bool(readable and not is_transformed(given))


def _name(model: Model, layer: Any) -> str:
    module: Any = model.ref()
    return next((name for name, one in module.named_modules() if one is layer), "") if module is not None else ""


def _rounded(value: Any) -> float:
    return float(f"{float(value):.3g}")
