"""The remedy for training with gradients disabled: enable them from the training call on."""

from __future__ import annotations

from typing import Any

from truestep.experiments.changes.parts.calls import AroundCalls


class TrainWithGrad(AroundCalls):
    """A model in train mode that the line of the finding calls without gradients is called with gradients.

    They stay enabled, since the loss is computed after the call, until the script disables them or leaves its
    `torch.no_grad()`. Under `torch.inference_mode()` nothing is changed.
    """

    name = "train-with-grad"
    remedies = ("training-without-grad",)
    silences = True

    def wants(self, module: Any) -> bool:
        import torch

        return bool(module.training) and not torch.is_grad_enabled()

    def enter(self, module: Any) -> Any:
        import torch

        if not torch.is_inference_mode_enabled():
            torch.set_grad_enabled(True)
            self.applied += 1
