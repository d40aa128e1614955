"""The loss of every step of a script, as it is given to the backward pass, out of the scale of fp16."""

from __future__ import annotations

import json
import time
import weakref
from contextlib import ExitStack
from typing import Any, TextIO

from truestep.probes._patch import patch

_EVERY = 20
"""Lines after which the file is written: a run that is killed loses no more."""


class Recorder:
    """Writes one line per step of an optimizer: its number, the mean of the losses since the last one, and seconds.

    Args:
        file: where to.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._losses: list[float] = []
        self._scales: weakref.WeakKeyDictionary[Any, float] = weakref.WeakKeyDictionary()
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._begun = time.perf_counter()
        self._lines = 0

    def install(self, stack: ExitStack) -> None:
        """Look at losses and steps until the stack unwinds. torch is imported."""
        import torch
        from torch.optim import optimizer

        def _engine_run_backward(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            if kwargs.get("accumulate_grad", False) and torch._C._current_graph_task_id() == -1:
                self._loss(outputs)
            return backward(outputs, *args, **kwargs)

        def scale(scaler: Any, outputs: Any) -> Any:
            scaled = scale_of_torch(scaler, outputs)
            if isinstance(scaled, torch.Tensor) and scaler.is_enabled():
                self._scales[scaled] = float(scaler.get_scale())
            return scaled

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
        scale_of_torch = patch(stack, torch.amp.GradScaler, "scale", scale)
        handle = optimizer.register_optimizer_step_post_hook(self._stepped)
        stack.callback(handle.remove)

    def close(self) -> None:
        """Write what waits."""
        self._file.flush()

    def _loss(self, outputs: Any) -> None:
        root = outputs[0] if isinstance(outputs, tuple | list) and outputs else outputs
        if root.numel() == 1:
            self._losses.append(float(root.detach()) / self._scales.get(root, 1.0))

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        losses, self._losses = self._losses, []
        number = self._numbers.setdefault(optimizer, len(self._numbers))
        loss = sum(losses) / len(losses) if losses else None
        line = {"optimizer": number, "loss": loss, "seconds": round(time.perf_counter() - self._begun, 6)}
        self._file.write(json.dumps(line) + "\n")
        self._lines += 1
        if self._lines % _EVERY == 0:
            self._file.flush()
