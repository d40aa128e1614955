"""Collect the losses of a script's backward passes, without the scale of fp16."""

from __future__ import annotations

from contextlib import ExitStack

from truestep import seams


class GivenLosses:
    """Collects the scalar losses of outermost backward passes that accumulate gradients."""

    def __init__(self) -> None:
        self._losses: list[float] = []

    def listen(self, stack: ExitStack) -> None:
        """Collect until the stack unwinds. torch must be imported."""
        scales = seams.scaler.scales(stack)

        def passes(this: seams.backward.Pass) -> None:
            root = this.roots[0]
            if root.numel() == 1:
                self._losses.append(float(root.detach()) / scales.get(root, 1.0))

        seams.backward.watch(stack, before=passes)

    def take(self) -> list[float]:
        """Return the losses since the last call."""
        losses, self._losses = self._losses, []
        return losses
