"""The remedy for weights kept without a copy: `state_dict()` returns a copy there."""

from __future__ import annotations

import copy
import sys
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.seams.patch import patch


class CopyState(Aimed):
    """`state_dict()` of a module, called at the line of the finding, returns a copy: later steps do not change it."""

    name = "copy-state"
    remedies = ("best-weights-aliased",)
    silences = True

    def aim(self, stack: ExitStack) -> None:
        import torch

        def state_dict(module: Any, *args: Any, **kwargs: Any) -> Any:
            state = state_of_torch(module, *args, **kwargs)
            inner = bool(args) or kwargs.get("destination") is not None  # a submodule's part of a larger state dict
            if inner or self.at(sys._getframe(1)) is None:
                return state
            self.applied += 1
            return copy.deepcopy(state)

        state_of_torch = patch(stack, torch.nn.Module, "state_dict", state_dict)
