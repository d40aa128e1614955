"""Collect the losses of a script's backward passes, without the scale of fp16."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch
from truestep.seams.refs import tensor_keys


class GivenLosses:
    """Collects the scalar losses of outermost backward passes that accumulate gradients."""

    def __init__(self) -> None:
        self._losses: list[float] = []
        self._scales: Any = tensor_keys()

    def listen(self, stack: ExitStack) -> None:
        """Collect until the stack unwinds. torch must be imported."""
        import torch

        def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("accumulate_grad", False) and torch._C._current_graph_task_id() == -1:
                root = outputs[0] if isinstance(outputs, tuple | list) and outputs else outputs
                if root.numel() == 1:
                    self._losses.append(float(root.detach()) / self._scales.get(root, 1.0))
            return backward(outputs, *args, **kwargs)

        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = scale_of_torch(scaler, outputs)
            if isinstance(scaled, torch.Tensor) and scaler.is_enabled():
                self._scales[scaled] = float(scaler.get_scale())
            return scaled

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
        scale_of_torch = patch(stack, torch.amp.GradScaler, "scale", scale)

    def take(self) -> list[float]:
        """Return the losses since the last call."""
        losses, self._losses = self._losses, []
        return losses
