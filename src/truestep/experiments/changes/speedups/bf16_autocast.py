"""Mixed precision: models and losses under autocast to bf16."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.speedup import Speedup
from truestep.experiments.running.inside.outermost_calls import RootCalls


class Bf16Autocast(Speedup):
    """Autocast from the first call of a model to the backward pass, so that the loss is inside.

    Under `torch.no_grad()` it applies to the call only. A script that uses autocast keeps its own.
    """

    name = "bf16-autocast"
    summary = "forward passes and losses under torch.autocast to bf16"
    lines = "with torch.autocast(device.type, dtype=torch.bfloat16):\n    loss = criterion(model(x), y)"
    priority = 60
    tolerance = 3e-2

    def install(self, stack: ExitStack) -> None:
        calls = _Casting(self)
        if not calls.listen(stack):
            return

        def run_engine(*args: Any, **kwargs: Any) -> Any:
            calls.end()
            return backward(*args, **kwargs)

        backward = seams.backward.wrap(stack, run_engine)
        stack.callback(calls.end)


class _Casting(RootCalls):
    def __init__(self, change: Bf16Autocast) -> None:
        super().__init__()
        self._change = change
        self._open: Any = None

    def entered(self, module: Any) -> Any:
        import torch

        if self._open is not None and not torch.is_grad_enabled():
            return None
        if self._open is not None or not self.is_model(module):
            return None
        device = next(module.parameters()).device.type
        if torch.is_autocast_enabled(device) or not _takes_bf16(device):
            return None
        context: Any = torch.autocast(device, dtype=torch.bfloat16)
        context.__enter__()
        self._change.applied += 1
        if torch.is_grad_enabled():
            self._open = context
            return None
        return context

    def left(self, token: Any) -> None:
        if token is not None:
            token.__exit__(None, None, None)

    def end(self) -> None:
        """Leave the context that began with a forward pass."""
        if self._open is not None:
            context, self._open = self._open, None
            context.__exit__(None, None, None)


def _takes_bf16(device: str) -> bool:
    import torch

    return device == "cpu" or (device == "cuda" and torch.cuda.is_bf16_supported())
