"""The remedy for an optimizer that is never stepped: step it before its gradients are cleared."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of

_LEAST = 10
"""Number of times that unused gradients are cleared, while others step, before an optimizer counts as forgotten: the
rarer steps of one of two optimizers (delayed policies, several steps of a critic) come sooner."""


class StepAll(Change):
    """An optimizer that never stepped while another one did, although its unused gradients are cleared repeatedly,
    steps right before each further clearing: from the tenth on, on all gradients that the backward passes left.

    It does nothing under a `GradScaler`, since the gradients would be scaled, and for LBFGS, which needs a closure.
    """

    name = "step-all"
    remedies = ("backward-without-step",)

    def install(self, stack: ExitStack) -> None:
        self._passes = 0
        self._scaled = False
        self._stepping = False
        self._stepped: MutableMapping[Any, None] = weakref.WeakKeyDictionary()
        self._cleared: MutableMapping[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
        """Number of clearings of unused gradients, and of the backward passes before, by optimizer."""
        seams.backward.watch(stack, before=self._passed)
        seams.scaler.watch(stack, self._scales)
        seams.zero_grad.watch(stack, optimizer=self._clears)
        seams.step.watch(stack, after=self._steps)

    def _passed(self, this: seams.backward.Pass) -> None:
        self._passes += 1

    def _scales(self, scaler: Any, outputs: Any, result: Any) -> None:
        self._scaled |= scaler.is_enabled()

    def _steps(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._stepping:
            self._stepped[optimizer] = None

    def _clears(self, optimizer: Any, set_to_none: bool) -> None:
        import torch

        times, before = self._cleared.get(optimizer, (0, 0))
        if (
            isinstance(optimizer, torch.optim.LBFGS)
            or self._scaled
            or optimizer in self._stepped
            or not self._stepped
            or self._passes == before
        ):
            return
        if not any(p.grad is not None and p.grad.any() for p in parameters_of(optimizer)):
            return
        self._cleared[optimizer] = times + 1, self._passes
        if times >= _LEAST:
            self._stepping = True
            try:
                optimizer.step()
            finally:
                self._stepping = False
            self.applied += 1
