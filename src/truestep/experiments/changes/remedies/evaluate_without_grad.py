"""The remedy for evaluations that record graphs: disable gradients during their calls."""

from __future__ import annotations

from typing import Any

from truestep.experiments.changes.parts.calls import AroundCalls


class EvaluateWithoutGrad(AroundCalls):
    """A model called in eval mode at the line of the finding runs without gradients."""

    name = "evaluate-without-grad"
    remedies = ("no-grad-missing",)
    silences = True

    def wants(self, module: Any) -> bool:
        import torch

        return not module.training and torch.is_grad_enabled()

    def enter(self, module: Any) -> Any:
        import torch

        torch.set_grad_enabled(False)
        self.applied += 1
        return lambda: torch.set_grad_enabled(True)
