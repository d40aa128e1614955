"""The remedy for clipping an empty set: clip the parameters of the optimizer right before its step."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, parameters_of
from truestep.seams.patch import patch


class ClipHeld(Change):
    """If the only clipping before a step had no gradient of an optimizer, its limit is applied to those of the step.

    This is clipping of an exhausted iterator, of an empty list, or of parameters without gradients outside of all
    optimizers.
    """

    name = "clip-held"
    remedies = ("clip-wrong-parameters",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import utils

        optimizers = built(stack)
        clips: list[Any] = []
        """Calls since the latest step: limit and options of each, or None if it had gradients to clip."""

        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            held = {id(p) for optimizer in list(optimizers) for p in parameters_of(optimizer)}
            idle = not any(p.grad is not None or id(p) in held for p in parameters)
            clips.append((max_norm, args, kwargs) if idle else None)
            return clip(parameters, max_norm, *args, **kwargs)

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            asked = clips.copy()
            clips.clear()
            if len(asked) == 1 and asked[0] is not None:
                max_norm, more, options = asked[0]
                clip(list(parameters_of(optimizer)), max_norm, *more, **options)
                self.applied += 1

        clip = patch(stack, utils, "clip_grad_norm_", clip_grad_norm_)
        patch(stack, utils.clip_grad, "clip_grad_norm_", clip_grad_norm_)
        seams.step.watch(stack, before=steps)
