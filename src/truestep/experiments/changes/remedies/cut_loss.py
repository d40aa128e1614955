"""The remedy for losses that are kept with their graphs: detach a loss after its backward pass."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.seams.patch import patch
from truestep.seams.refs import Ref, tensor_keys


class CutLoss(Aimed):
    """A loss is detached, in place, after a backward pass that frees its graph: the script keeps only a number.

    A loss that a scaler multiplied is detached with its product. Kept outputs are not affected.
    """

    name = "cut-loss"
    remedies = ("loss-kept-with-graph",)
    silences = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._scaled: Any = tensor_keys()

    def aim(self, stack: ExitStack) -> None:
        import torch

        def _engine_run_backward(
            outputs: Any, gradients: Any, keep: Any, create: Any, *args: Any, **kwargs: Any
        ) -> Any:
            result = backward(outputs, gradients, keep, create, *args, **kwargs)
            leaves = kwargs.get("accumulate_grad", False) and torch._C._current_graph_task_id() == -1
            if leaves and not keep and not create and self.aims:
                for root in outputs:
                    self._cut(root)
            return result

        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = scale_of_torch(scaler, outputs)
            if isinstance(scaled, torch.Tensor) and isinstance(outputs, torch.Tensor):
                self._scaled[scaled] = Ref(outputs)
            return scaled

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
        scale_of_torch = patch(stack, torch.amp.GradScaler, "scale", scale)

    def _cut(self, root: Any) -> None:
        import torch

        scaled = self._scaled.get(root)
        for loss in (root, None if scaled is None else scaled()):
            if isinstance(loss, torch.Tensor) and loss.grad_fn is not None:
                with contextlib.suppress(RuntimeError):  # a view cannot be detached in place
                    loss.detach_()
                    self.applied += 1
