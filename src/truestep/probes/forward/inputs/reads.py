"""Values that models are called on: mean, spread and range of sampled elements, on the CPU only."""

from __future__ import annotations

import re
from types import FunctionType
from typing import Any

from truestep.events import InputsRead, LevelsRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.inputs.axes import Axes
from truestep.probes.forward.inputs.graphs import Graphs
from truestep.probes.forward.inputs.levels import levels_of, scaled_by_itself
from truestep.probes.forward.losses.label_values import is_transformed

_ELEMENTS = 4096
_LARGEST_COPY = 1 << 20
_READS = 2
"""Calls that are read of one place in one sampled step."""
READS_ASIDE = 3
"""Calls of an evaluation that are read of one place outside of sampled steps."""
_STATE = re.compile(
    r"(^|_)(h|c|hx|cx|hidden|states?|mem|memory|mems|cache|past|prev|previous|context|carry|mask|weights?|z|noise|t|time)\d*($|_)"
)
"""Names of arguments that are results of earlier calls, masks or drawn at random."""


class Inputs:
    """Emits `InputsRead` and `LevelsRead`, of images `AxesRead`, and of batches of graphs `EdgesRead`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._axes = Axes(scene)
        self._graphs = Graphs(scene)
        self._reads: dict[int, tuple[int, int]] = {}
        """Step and number of its reads, by number of the model and kind of the call."""

    def look(self, model: int, module: Any, args: tuple[Any, ...], site: Site | None, name: str) -> None:
        """Emit the values of the first argument, which is a variable of this name, if any."""
        scene = self._scene
        given: Any = args[0] if args else None
        if type(given) is not scene.torch.Tensor or not _is_readable(given):
            return
        training = bool(module.training) and scene.torch.is_grad_enabled()
        if scene.sampling.on and not self._is_due(model, training=training):
            return
        origin = {"loader": scene.loader, "given": name}
        place = {"model": model, "training": training, "site": site} | origin
        self._emit(given, place)
        if given.is_floating_point():
            self._emit_levels(given, place)
        self._axes.look(model, module, given, training, site)
        self._graphs.look(model, args, site)
        later = None if args[0].is_floating_point() else self._later(module, args)
        if later is not None:
            argument, given = later
            self._emit(given, place, argument)

    def _is_due(self, model: int, *, training: bool) -> bool:
        """Return True if few calls of this kind were read in this sampled step."""
        key, step = 2 * model + training, self._scene.sampling.step
        before, reads = self._reads.get(key, (-1, 0))
        reads = reads + 1 if before == step else 1
        self._reads[key] = (step, reads)
        return reads <= _READS

    def _later(self, module: Any, args: tuple[Any, ...]) -> tuple[str, Any] | None:
        """Return the first of the later arguments with decimals and a row for each of the first, and its name."""
        forward = getattr(type(module), "forward", None)
        if not isinstance(forward, FunctionType):
            return None
        names = forward.__code__.co_varnames[1 : forward.__code__.co_argcount]
        rows = args[0].shape[:1]
        for name, given in zip(names[1:], args[1:], strict=False):
            numbers = type(given) is self._scene.torch.Tensor and given.is_floating_point() and given.dim() > 1
            if numbers and given.shape[:1] == rows and _is_readable(given) and not given.requires_grad:
                return None if _STATE.search(name) else (name, given)
        return None

    def _emit(self, given: Any, place: dict[str, Any], argument: str = "") -> None:
        with self._scene.sampling.timed(given):
            flat = given.detach().reshape(-1)
            values = flat[:: max(1, flat.numel() // _ELEMENTS) | 1].double()
            mean = float(values.mean())
            spread = float((values - mean).square().mean().sqrt())
            least, most = (float(value) for value in values.aminmax())
        self._scene.tell(
            InputsRead,
            mean=_rounded(mean),
            spread=_rounded(spread),
            least=_rounded(least),
            most=_rounded(most),
            dtype=str(given.dtype).removeprefix("torch."),
            floating=given.is_floating_point(),
            shape=tuple(int(size) for size in given.shape),
            argument=argument,
            **place,
        )

    def _emit_levels(self, given: Any, place: dict[str, Any]) -> None:
        with self._scene.sampling.timed(given):
            found, own = levels_of(self._scene.torch, given), scaled_by_itself(given)
        for one in found:
            self._scene.tell(
                LevelsRead,
                part=one.part,
                distance=one.distance,
                offset=one.offset,
                mean=one.mean,
                spread=one.spread,
                even=one.even,
                own=own,
                **place,
            )


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _is_readable(given: Any) -> bool:
    return (
        given.is_cpu
        and has_values(given)
        and not given.is_complex()
        and not given.is_quantized
        and given.numel() > 0
        and (given.is_contiguous() or given.numel() <= _LARGEST_COPY)
        and not is_transformed(given)
    )
