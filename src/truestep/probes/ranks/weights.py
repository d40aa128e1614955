"""Values of parameters after a sampled step: ranks that train one model must have the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truestep.events import Site, WeightsRead
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Panel
from truestep.seams.divided import is_divided
from truestep.seams.fsdp import is_flattened, is_freed

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_PARAMETERS = 24
_ELEMENTS = 16
_READS = 24
"""Sampled steps of a run in which values are read."""


class RankWeights:
    """Emits `WeightsRead`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._reads = 0

    def look(self, panel: Panel, site: Site | None) -> None:
        """Emit some values of some parameters, spread over the optimizer, in one copy from the device."""
        if self._reads >= _READS:
            return
        self._reads += 1
        known = [(held.number, held.ref()) for held in panel.everything]
        sharded = any(parameter is not None and _is_sharded(parameter) for _, parameter in known)
        whole = [(number, parameter) for number, parameter in known if parameter is not None and _is_whole(parameter)]
        spread = whole[:: max(1, -(-len(whole) // _PARAMETERS))]
        torch = self._scene.torch
        pieces = [_some(parameter) for _, parameter in spread]
        read = torch.cat(pieces).tolist() if pieces else []
        values, at = [], 0
        for piece in pieces:
            values.append(tuple(float(f"{value:.7g}") for value in read[at : at + len(piece)]))
            at += len(piece)
        self._scene.tell(
            WeightsRead,
            optimizer=panel.number,
            parameters=tuple(number for number, _ in spread),
            values=tuple(values),
            sharded=sharded,
            site=site,
        )


def _some(parameter: Any) -> Any:
    flat = parameter.detach().reshape(-1)
    return flat[:: max(1, flat.numel() // _ELEMENTS)][:_ELEMENTS].double()


def _is_sharded(parameter: Any) -> bool:
    """Return True for a parameter that FSDP shards over one dimension of ranks."""
    if is_flattened(parameter):
        return True
    placements: Any = getattr(parameter, "placements", ())
    return len(placements) == 1 and bool(placements[0].is_shard())


def _is_whole(parameter: Any) -> bool:
    return bool(
        parameter.requires_grad
        and not is_divided(parameter)
        and not is_flattened(parameter)
        and parameter.is_floating_point()
        and parameter.numel()
        and has_values(parameter)
        and not is_freed(parameter)
    )
