"""The remedy for losses that are kept with their graphs: detach a loss after its backward pass."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.aimed import Aimed
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

        def passed(this: seams.backward.Pass) -> None:
            if not this.retain_graph and not this.create_graph and self.aims:
                for root in this.roots:
                    self._cut(root)

        def scaled(scaler: Any, outputs: Any, result: Any) -> None:
            if isinstance(result, torch.Tensor) and isinstance(outputs, torch.Tensor):
                self._scaled[result] = Ref(outputs)

        seams.backward.watch(stack, after=passed)
        seams.scaler.watch(stack, scaled)

    def _cut(self, root: Any) -> None:
        import torch

        scaled = self._scaled.get(root)
        for loss in (root, None if scaled is None else scaled()):
            if isinstance(loss, torch.Tensor) and loss.grad_fn is not None:
                with contextlib.suppress(RuntimeError):  # a view cannot be detached in place
                    loss.detach_()
                    self.applied += 1
