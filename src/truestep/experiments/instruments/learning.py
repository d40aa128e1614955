"""Record the preconditions of learning: learning rates, trained weights, and constant targets."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.experiments.changes.harness.called_again import LOSSES
from truestep.experiments.instruments.instrument import Instrument
from truestep.seams.patch import patch

_MOST_TARGETS = 1000
_MOST_VALUES = 1_000_000
_SHOWN = 3


class Learning(Instrument):
    """Records the learning rates of all steps, the part of the model that the first step trains, and the targets.

    Args:
        folder: folder for its files.
        script: path or name of the script.
    """

    name = "learning"

    def __init__(self, folder: Path, script: str) -> None:
        super().__init__(folder, script)
        self._lowest, self._highest = float("inf"), 0.0
        self._modules: dict[int, Any] = {}
        self._trained: dict[str, Any] = {}
        self._targets: set[int] = set()
        self._first_of_step = True

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import functional
        from torch.nn.modules import module as modules

        self._torch: Any = torch
        self._hook = modules.register_module_forward_pre_hook(self._called)
        stack.callback(self._hook.remove)
        seams.step.watch(stack, before=self._steps)
        for name in LOSSES:
            patch(stack, functional, name, self._loss(name, getattr(functional, name)))

    def _called(self, module: Any, args: Any) -> None:
        if not self._torch.compiler.is_compiling():
            self._modules.setdefault(id(module), module)

    def _steps(self, optimizer: Any, *_: Any) -> None:
        self._first_of_step = True
        rates = [float(group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]
        if rates:
            self._lowest, self._highest = min(self._lowest, max(rates)), max(self._highest, *rates)
        if not self._trained:
            self._hook.remove()
            self._trained = self._counted(optimizer)
            self._modules.clear()

    def _counted(self, optimizer: Any) -> dict[str, Any]:
        """Return the number of values of the called models, and the numbers of trained and frozen ones."""
        names: dict[int, tuple[str, Any]] = {}
        for module in sorted(self._modules.values(), key=lambda module: -sum(1 for _ in module.modules())):
            for name, parameter in module.named_parameters():
                names.setdefault(id(parameter), (name, parameter))
        held = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
        trained = [name for key, (name, _) in names.items() if key in held]
        return {
            "values": sum(parameter.numel() for _, parameter in names.values()),
            "trained_values": sum(parameter.numel() for key, (_, parameter) in names.items() if key in held),
            "frozen_values": sum(p.numel() for _, p in names.values() if not p.requires_grad),
            "trained": trained[:_SHOWN],
        }

    def _loss(self, name: str, loss_of_torch: Callable[..., Any]) -> Callable[..., Any]:
        def loss(*args: Any, **kwargs: Any) -> Any:
            if self._first_of_step and self._torch.is_grad_enabled() and not self._torch.compiler.is_compiling():
                tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, self._torch.Tensor)]
                targets = [tensor for tensor in tensors if not tensor.requires_grad]
                if len(targets) < len(tensors):
                    self._first_of_step = False
                    self._note(targets)
            return loss_of_torch(*args, **kwargs)

        loss.__name__ = name
        return loss

    def _note(self, targets: list[Any]) -> None:
        if len(self._targets) < _MOST_TARGETS and all(target.numel() <= _MOST_VALUES for target in targets):
            digest = 0
            for target in targets:
                digest = zlib.crc32(target.detach().to("cpu", self._torch.float64).numpy().tobytes(), digest)
            self._targets.add(digest)

    def results(self, how: str) -> dict[str, Any]:
        """Return the lowest and highest learning rate, the trained parameters, and the number of different targets."""
        rates = [self._lowest, self._highest] if self._lowest <= self._highest else None
        return {"rates": rates, **self._trained, "targets": len(self._targets)}
