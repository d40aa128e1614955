"""Scores of one number for each sample: the direction in which a loss moves them, and the model before them."""

from __future__ import annotations

from typing import Any

from truestep.events import ResultPushed, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.copies.call import called
from truestep.probes.copies.objects import Refused
from truestep.seams.refs import ValuesRef

_MOST_RESULTS = 8
_ROUNDING = 1e-7


class Pushes:
    """Emits `ResultPushed`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._models: set[int] = set()
        self._made: list[tuple[int, tuple[int, int], ValuesRef, Any]] = []
        """The models of the latest results, with their place in memory: a result itself can be gone after `detach`; and
        two sums of their values, which the same rows in another order have too."""

    def origin(self, module: Any, model: int, frame: Any) -> tuple[int, bool]:
        """Return the model that made the input of another one, 0 if none did; and True for an input with its graph."""
        try:
            call = called(module, frame)
        except Refused:
            return 0, False
        for value in (*call.args, *call.kwargs.values()):
            place = self._memory(value)
            likely = [one for one in self._made if place is not None and one[0] != model and one[1][1] == place[1]]
            sums = self._sums(value) if likely else None
            for other, made, ref, known in likely:
                if (made == place and not ref.expired()) or _are_alike(known, sums):
                    return other, bool(value.requires_grad)
        return 0, False

    def returned(self, model: int, tensor: Any) -> None:
        """Record a result."""
        self._models.add(model)
        place = self._memory(tensor)
        if place is not None:
            sums = self._sums(tensor) if len(self._models) > 1 else None  # one model has no other one before it
            self._made = [(model, place, ValuesRef(tensor), sums), *self._made[: _MOST_RESULTS - 1]]

    def emit(self, model: int, origin: tuple[int, bool], push: Any, loss: Site | None) -> None:
        """Emit the direction of the gradient of a result."""
        least, most, size = (float(one) for one in push.tolist())
        up = most < 0
        if up or least > 0:
            self._scene.tell(
                ResultPushed,
                model=model,
                scored=origin[0],
                tracked=origin[1],
                up=up,
                size=float(f"{size:.2g}"),
                loss=loss,
            )
        elif origin[0]:
            self._scene.tell(ResultPushed, model=model, scored=origin[0], tracked=origin[1], loss=loss)

    def _sums(self, value: Any) -> Any:
        """Return two sums of values; None for other numbers, and on a device without double precision."""
        if not value.is_floating_point() or value.device.type == "mps":
            return None
        torch, values = self._scene.torch, value.detach()
        return torch.stack([values.sum(dtype=torch.float64), values.square().sum(dtype=torch.float64)]).cpu()

    def _memory(self, value: Any) -> tuple[int, int] | None:
        """Return the place of the values of a tensor in memory, and their number."""
        if type(value) is not self._scene.torch.Tensor or not has_values(value) or not value.numel():
            return None
        return int(value.data_ptr()), int(value.numel())


def _are_alike(one: Any, two: Any) -> bool:
    """Return True if sums differ by rounding only."""
    if one is None or two is None:
        return False
    return bool(((one - two).abs() <= _ROUNDING * two[1].abs().clamp_min(_ROUNDING)).all())


def push(torch: Any, gradient: Any) -> Any:
    """Return the least, the largest and the mean size of the gradient of one score for each sample; None for others."""
    if gradient.dim() > 1 and gradient.shape[1] != 1:
        return None
    values = gradient.detach()
    return torch.stack([values.min(), values.max(), values.abs().mean()])
