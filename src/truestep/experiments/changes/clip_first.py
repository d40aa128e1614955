"""The remedy for a clip in the wrong place: the same clip, right before every step."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes._change import Change
from truestep.probes._patch import patch


class ClipFirst(Change):
    """What the script clips, and to which norm, is clipped before each step; the script's own clip does nothing more.

    The norm is known from the script's first clip on: steps before it are taken as they are.
    """

    name = "clip-first"
    remedies = ("clip-after-step", "clip-before-backward")

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import utils
        from torch.optim import optimizer as module

        known: dict[str, Any] = {}

        def clip_grad_norm_(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            known["clip"] = (parameters, max_norm, args, kwargs)
            return clip(parameters, float("inf"), *args, **kwargs)

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            if known:
                parameters, max_norm, more, options = known["clip"]
                clip(parameters, max_norm, *more, **options)
                self.applied += 1

        clip = patch(stack, utils, "clip_grad_norm_", clip_grad_norm_)
        patch(stack, utils.clip_grad, "clip_grad_norm_", clip_grad_norm_)
        stack.callback(module.register_optimizer_step_pre_hook(steps).remove)
