"""Statistics of batch normalisation: those of evaluations that no batch has changed, and those of frozen layers."""

from __future__ import annotations

from typing import Any

from truestep.events import FirstStatisticsUsed, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.inputs.first_norm import FirstNorm
from truestep.probes.forward.model import Model
from truestep.probes.gradients.gradient_states import version
from truestep.probes.optimizer.copies import pairs_loop
from truestep.probes.optimizer.sampled_measures import fingerprint
from truestep.seams.refs import Ref

_MOST_LOOKS = 16
_MANY_WRITES = 10
"""Fewer writes to a parameter may be its initialisation."""


class Evaluated:
    """Looks at the layers that run in evaluations, in a few of them for each model."""

    def __init__(self, scene: Scene) -> None:
        self.model: Model | None = None
        """The model under evaluation, while its layers are looked at."""
        self._inputs = FirstNorm(scene)
        self._scene = scene
        self._layers = self._first = 0
        self._looks: dict[int, tuple[int, int]] = {}
        """Model to its number of looks and the step of the latest."""

    def begin(self, model: Model) -> None:
        """Look at the layers of a call without gradients: the first calls of the model, and later ones once a step."""
        self.model, self._layers, self._first = None, 0, 0
        step = self._scene.sampling.step
        looks, latest = self._looks.get(model.number, (0, 0))
        if step > latest and looks < _MOST_LOOKS and any("BatchNorm" in kind for kind, _ in model.sensitive):
            self._looks[model.number] = looks + 1, step
            self.model = model
        if self._inputs.begins(model):
            self.model = model

    def met(self, layer: Any, args: tuple[Any, ...]) -> None:
        """Count a layer that runs."""
        self._inputs.met(layer, args)
        mean, variance = layer.running_mean, layer.running_var
        if layer.training or mean is None or not has_values(mean) or not (mean.is_cpu or self._scene.sampling.on):
            return
        self._layers += 1
        self._first += not bool(mean.any()) and bool((variance == 1).all())

    def end(self, site: Site | None) -> None:
        """Emit the layers with first statistics, if the weights have been written to."""
        self._inputs.end(site)
        model, self.model = self.model, None
        module = None if model is None else model.ref()
        if model is None or module is None or not self._first:
            return
        held = [(self._scene.ledger.held(parameter), parameter) for parameter in module.parameters()]
        known = [(one, parameter) for one, parameter in held if one is not None and one.base is not None]
        writes = [(one, parameter, version(parameter)) for one, parameter in known]
        if not any(
            now not in (one.base_version, -1) or now >= _MANY_WRITES or one.base != fingerprint(parameter)
            for one, parameter, now in writes
        ):
            return
        optimized = any(one.panel is not None and one.panel.number for one, _ in known)
        loops = [] if optimized else [at for path in self._scene.sites.own_files() if (at := pairs_loop(path))]
        self._scene.tell(
            FirstStatisticsUsed,
            model=model.number,
            layers=self._first,
            of=self._layers,
            loop=loops[0] if loops else None,
            site=site,
        )


class Frozen:
    """Follows layers in train mode with weights that are frozen, and statistics that other batches had made."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Ref, float, bool]] = {}
        """A layer by its id, with the sum of its weights and whether it had statistics when first seen frozen."""

    def moves(self, layer: Any) -> bool:
        """Return True if a frozen layer has kept its weights since an earlier call, and had statistics then."""
        weight = layer.weight
        if weight is None or weight.requires_grad or not has_values(weight) or layer.running_mean is None:
            return False
        total = float(weight.detach().double().sum())
        entry = self._known.get(id(layer))
        if entry is None or entry[0]() is not layer:
            self._known[id(layer)] = Ref(layer), total, bool(layer.running_mean.any())
            return False
        return entry[2] and entry[1] == total
