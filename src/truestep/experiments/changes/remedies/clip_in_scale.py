"""The remedy for clipping of gradients that are still scaled: multiply the limit by the scale."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, parameters_of
from truestep.seams.patch import patch
from truestep.seams.refs import tensor_keys


class ClipInScale(Change):
    """Clipping acts on gradients in the scale of a `GradScaler` as on the same gradients without scale.

    The returned norm is without scale. Gradients count as scaled if the backward pass of a scaled loss made them, until
    the scaler divides them.
    """

    name = "clip-in-scale"
    remedies = ("clip-before-unscale",)

    def install(self, stack: ExitStack) -> None:
        from torch.nn import utils

        optimizers = built(stack)
        scaled = seams.scaler.scales(stack)
        before: list[tuple[Any, tuple[int, int] | None]] = []
        self._scales: Any = tensor_keys()

        def begins(this: seams.backward.Pass) -> None:
            held = [p for optimizer in list(optimizers) for p in parameters_of(optimizer)]
            before[:] = [(p, _state(p.grad)) for p in held]

        def ended(this: seams.backward.Pass) -> None:
            used = scaled.get(this.roots[0]) if len(this.roots) == 1 else None
            for parameter, state in before:
                if _state(parameter.grad) != state:
                    self._scales[parameter] = used
            before.clear()

        def _unscale_grads_(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            for parameter in parameters_of(optimizer):
                self._scales.pop(parameter, None)
            return unscale(scaler, optimizer, *args, **kwargs)

        seams.backward.watch(stack, before=begins, after=ended)
        unscale = seams.scaler.wrap(stack, "_unscale_grads_", _unscale_grads_)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            clip = self._in_scale(getattr(utils.clip_grad, name))
            patch(stack, utils, name, clip)
            patch(stack, utils.clip_grad, name, clip)

    def _in_scale(self, clip: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        def in_scale(parameters: Any, limit: Any = None, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            name = "max_norm" if limit is None and "max_norm" in kwargs else "clip_value"
            limit = kwargs.pop(name) if limit is None else limit
            scale = self._scale_of(parameters)
            if scale is None:
                return clip(parameters, limit, *args, **kwargs)
            self.applied += 1
            norm = clip(parameters, limit * scale, *args, **kwargs)
            return None if norm is None else norm / scale

        return in_scale

    def _scale_of(self, parameters: Iterable[Any]) -> float | None:
        """Return the common scale of these gradients; None without a scale, or if they differ."""
        scales = {self._scales.get(p) for p in parameters if p.grad is not None}
        return scales.pop() if len(scales) == 1 else None


def _state(gradient: Any) -> tuple[int, int] | None:
    """Return identity and version of a gradient, which change when a backward pass writes to it."""
    return None if gradient is None else (id(gradient), gradient._version)
