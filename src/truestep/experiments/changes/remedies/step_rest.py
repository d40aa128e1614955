"""The remedy for batches at the end of an epoch that do not fill a window of accumulation: take a step for them."""

from __future__ import annotations

import weakref
from collections.abc import MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import built, is_outermost_backward, parameters_of, untraced
from truestep.seams.patch import patch


class StepRest(Change):
    """If every step of an optimizer used the same number of backward passes, two or more, it also steps before the
    gradients of fewer passes at the end of a loader are cleared; after the first time, as soon as the loader ends.

    Only in scripts with one optimizer and without a `GradScaler`: elsewhere gradients are left over for other reasons.
    Gradients that are not finite are cleared by the script as usual. Leftover gradients that stay are not changed.
    """

    name = "step-rest"
    remedies = ("accumulation-window-dropped",)

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.optim import optimizer as module
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        self._built: MutableMapping[Any, None] = built(stack)
        self._pending = self._size = 0
        self._regular = True
        self._drops = self._over = False
        """True if leftover gradients were cleared before; True if the loader of the pending ones is exhausted."""
        self._drawing: Any = lambda: None
        self._from: Any = lambda: None

        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            if is_outermost_backward(kwargs):
                self._pending += 1
                self._from = self._drawing
            return backward(*args, **kwargs)

        def scale(scaler: Any, outputs: Any) -> Any:
            self._regular &= not scaler.is_enabled()
            return scale_of_torch(scaler, outputs)

        def __next__(iterator: Any) -> Any:
            try:
                batch = next_of_torch(iterator)
            except StopIteration:
                self._over |= self._from() is iterator
                if self._drops:
                    self._step()
                raise
            self._drawing = weakref.ref(iterator)
            return batch

        def zero_optimizer(optimizer: Any, set_to_none: bool = True) -> None:
            self._clears()
            raw(optimizer, set_to_none)

        def zero_module(model: Any, set_to_none: bool = True) -> None:
            self._clears()
            zero_of_module(model, set_to_none)

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
        scale_of_torch = patch(stack, torch.amp.GradScaler, "scale", scale)
        next_of_torch = patch(stack, _BaseDataLoaderIter, "__next__", __next__)
        zero = vars(torch.optim.Optimizer)["zero_grad"]
        raw = getattr(zero, "__wrapped__", zero)
        patch(stack, torch.optim.Optimizer, "zero_grad", untraced(zero_optimizer))
        zero_of_module = patch(stack, torch.nn.Module, "zero_grad", zero_module)
        stack.callback(module.register_optimizer_step_post_hook(self._stepped).remove)

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self._regular &= self._size in (0, self._pending)
        self._size, self._pending, self._over = self._pending, 0, False

    def _clears(self) -> None:
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
