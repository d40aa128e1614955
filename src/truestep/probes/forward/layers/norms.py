"""Count the values from which layers of batch normalisation take statistics, at sampled steps: read from shapes."""

from __future__ import annotations

from typing import Any

from truestep.events import BatchStatisticsTaken, Site
from truestep.probes.context.scene import Scene
from truestep.probes.forward.layers.statistics import Frozen
from truestep.seams.refs import Ref

_MANY = 16


class Norms:
    """The layers of batch normalisation in train mode that ran in the current model call.

    Attributes:
        kinds: torch's own classes; others may count values in their own way.
        layers: number of these that ran.
    """

    def __init__(self, scene: Scene) -> None:
        nn = scene.torch.nn
        self.kinds = frozenset({nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d})
        self.layers = 0
        self._scene = scene
        self._tensor = scene.torch.Tensor
        self._most = 0
        self._kind = ""
        self._inputs: dict[int, Ref] = {}
        """Model to the first argument of its latest sampled call."""
        self._same = False
        self._frozen, self._drifting = Frozen(), 0

    def begin(self, model: int, args: tuple[Any, ...]) -> None:
        """Record that a call begins; forget the layers of the call before."""
        self.layers = self._most = self._drifting = 0
        given = args[0] if args and isinstance(args[0], self._tensor) else None
        before = self._inputs.get(model)
        self._same = before is not None and given is not None and before() is given
        if given is not None:
            self._inputs[model] = Ref(given)

    def met(self, layer: Any, given: Any) -> None:
        """Record that a layer is called."""
        if layer.training and layer.track_running_stats and layer.num_features:
            values = min(int(given.numel()) // int(layer.num_features), _MANY)
            self.layers += 1
            self._drifting += self._frozen.moves(layer)
            if values > self._most:
                self._most, self._kind = values, type(layer).__name__

    def tell(self, model: int, site: Site | None) -> None:
        """Emit the observations of the layers after the model has returned."""
        layers, self.layers = self.layers, 0
        self._scene.tell(
            BatchStatisticsTaken,
            model=model,
            layers=layers,
            values=self._most,
            kind=self._kind,
            same_input=self._same,
            frozen=self._drifting,
            site=site,
        )
