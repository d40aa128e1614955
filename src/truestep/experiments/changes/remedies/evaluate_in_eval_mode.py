"""The remedy for evaluations in train mode: the calls of the evaluation run in eval mode."""

from __future__ import annotations

from typing import Any

from truestep.experiments.changes.parts.calls import AroundCalls


class EvaluateInEvalMode(AroundCalls):
    """A model called without gradients at the line of the finding is in eval mode during the call.

    Afterwards the mode of each of its modules is restored.
    """

    name = "evaluate-in-eval-mode"
    remedies = ("eval-mode-missing",)

    def wants(self, module: Any) -> bool:
        import torch

        return bool(module.training) and not torch.is_grad_enabled()

    def enter(self, module: Any) -> Any:
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        self.applied += 1

        def undo() -> None:
            for part, training in modes:
                part.training = training

        return undo
