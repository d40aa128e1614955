"""The remedy for functional dropout that is always on: it follows the mode of its module."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FrameType
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.probes.context.local_variables import argument, readable
from truestep.seams.code.weaving import teach_script
from truestep.seams.patch import patch

_FUNCTIONS = ("dropout", "dropout_", "feature_dropout", "feature_dropout_")


class DropoutByMode(Aimed):
    """Dropout at the line of the finding is off if the module with this line is in eval mode.

    Dropout inside a compiled function is not affected.
    """

    name = "dropout-by-mode"
    remedies = ("functional-dropout-always-on",)

    def aim(self, stack: ExitStack) -> None:
        import torch

        compiling = torch.compiler.is_compiling

        def following(original: Any) -> Any:
            def dropout(input: Any, p: Any, train: Any) -> Any:
                if train and not compiling() and self._evaluates(sys._getframe(1)):
                    self.applied += 1
                    train = False
                return original(input, p, train)

            return dropout

        for name in _FUNCTIONS:
            original = getattr(torch._VF, name)
            replacement = following(original)
            patch(stack, torch._VF, name, replacement)
            teach_script(stack, original, replacement)

    def _evaluates(self, frame: FrameType | None) -> bool:
        """Return True if the frame is at the line of a finding, in a module in eval mode."""
        import torch

        if self.at(frame) is None:
            return False
        while frame is not None and readable(frame):
            owner = argument(frame, "self")
            if isinstance(owner, torch.nn.Module):
                return not owner.training
            frame = frame.f_back
        return False
