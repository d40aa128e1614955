"""Evaluations under inference mode, in which autograd tracks nothing."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.speedup import Speedup
from truestep.experiments.running.inside.outermost_calls import RootCalls


class InferenceMode(Speedup):
    """Calls of models in eval mode under `torch.no_grad()` are made under `torch.inference_mode()`."""

    name = "inference-mode"
    summary = "torch.inference_mode() instead of torch.no_grad() in evaluations"
    lines = "with torch.inference_mode():   # instead of torch.no_grad(), in evaluations"
    phases = ("evaluation",)
    combines = True

    def install(self, stack: ExitStack) -> None:
        _Inferring(self).listen(stack)


class _Inferring(RootCalls):
    def __init__(self, change: InferenceMode) -> None:
        super().__init__()
        self._change = change

    def entered(self, module: Any) -> Any:
        import torch

        if torch.is_grad_enabled() or torch.is_inference_mode_enabled() or module.training or not self.is_model(module):
            return None
        self._change.applied += 1
        mode = torch.inference_mode()
        mode.__enter__()
        return mode

    def left(self, token: Any) -> None:
        if token is not None:
            token.__exit__(None, None, None)
