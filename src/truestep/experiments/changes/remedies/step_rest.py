"""The remedy for batches at the end of an epoch that do not fill a window of accumulation: take a step for them."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, parameters_of


class StepRest(Change):
    """If every step of an optimizer used the same number of backward passes, two or more, it also steps before the
    gradients of fewer passes at the end of a loader are cleared; after the first time, as soon as the loader ends.

    Only in scripts with one optimizer and without a `GradScaler`: elsewhere gradients are left over for other reasons.
    Gradients that are not finite are cleared by the script as usual. Leftover gradients that stay are not changed.
    """

    name = "step-rest"
    remedies = ("accumulation-window-dropped",)

    def install(self, stack: ExitStack) -> None:
        self._built: MutableMapping[Any, None] = built(stack)
        self._pending = self._size = 0
        self._regular = True
        self._drops = self._over = False
        """True if leftover gradients were cleared before; True if the loader of the pending ones is exhausted."""
        self._drawing: Any = lambda: None
        self._from: Any = lambda: None

        seams.backward.watch(stack, before=self._passes)
        seams.scaler.watch(stack, self._scaled)
        seams.loader.watch(stack, drew=self._drew, ended=self._ended)
        seams.zero_grad.watch(stack, optimizer=self._clears, module=self._clears)
        seams.step.watch(stack, after=self._stepped)

    def _passes(self, this: seams.backward.Pass) -> None:
        self._pending += 1
        self._from = self._drawing

    def _scaled(self, scaler: Any, outputs: Any, scaled: Any) -> None:
        self._regular &= not scaler.is_enabled()

    def _drew(self, iterator: Any, batch: Any) -> None:
        self._drawing = weakref.ref(iterator)

    def _ended(self, iterator: Any) -> None:
        self._over |= self._from() is iterator
        if self._drops:
            self._step()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._regular &= self._size in (0, self._pending)
        self._size, self._pending, self._over = self._pending, 0, False

    def _clears(self, owner: Any, set_to_none: bool) -> None:
        if self._step():
            self._drops = True
        self._pending, self._over = 0, False

    def _step(self) -> bool:
        """Step on leftover gradients, if they surely are; return True if it did."""
        optimizers = list(self._built)
        known = self._regular and self._over and len(optimizers) == 1
        if not known or not 0 < self._pending < self._size:
            return False
        gradients = [p.grad for p in parameters_of(optimizers[0]) if p.grad is not None]
        if not gradients or not all(gradient.isfinite().all() for gradient in gradients):
            return False
        self._pending, size = self._size, self._size  # for the hook: a step like the others
        optimizers[0].step()
        self._size = size
        self.applied += 1
        return True
