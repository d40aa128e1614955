"""The remedy for training that continues in eval mode: restore the earlier modes."""

from __future__ import annotations

import weakref
from typing import Any

from truestep.experiments.changes.parts.calls import AroundCalls


class RestoreTrainMode(AroundCalls):
    """A model that the line of the finding first calls in train mode gets its modes restored when called in eval mode.

    Each of its modules gets the mode of the last call in train mode: modules frozen in eval mode stay there. Calls
    without gradients are left alone: they evaluate.
    """

    name = "restore-train-mode"
    remedies = ("train-mode-not-restored",)
    silences = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modes: weakref.WeakKeyDictionary[Any, list[tuple[weakref.ref[Any], bool]]] = weakref.WeakKeyDictionary()

    def wants(self, module: Any) -> bool:
        import torch

        return torch.is_grad_enabled()

    def enter(self, module: Any) -> Any:
        if module.training:
            self._modes[module] = [(weakref.ref(part), part.training) for part in module.modules()]
            return
        for ref, training in self._modes.get(module, ()):
            part = ref()
            if part is not None and part.training != training:
                part.training = training
        self.applied += module in self._modes
