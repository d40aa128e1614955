"""Tensors that exchange contents. Seams: the functions that `torch.utils.swap_tensors` looks up and calls."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.probes.context.probe import Probe, sees
from truestep.seams.patch import patch
from truestep.seams.refs import is_referenced, let_swap


class SwapProbe(Probe):
    """Allows swaps of observed tensors, and updates the ledger. It emits no event: values do not change."""

    def install(self, stack: ExitStack) -> None:
        scene = self.scene
        binding = scene.torch._C

        def _swap_tensor_impl(first: Any, second: Any) -> None:
            if scene.active and scene.coast.on:
                self.before(first, second)
            original(first, second)
            if scene.active:
                self.after(first, second)

        let_swap(stack)
        original = patch(stack, binding, "_swap_tensor_impl", _swap_tensor_impl)

    @sees
    def before(self, first: Any, second: Any) -> None:
        """Observe everything in full again where both tensors are watched: their gradients change places."""
        if is_referenced(first) and is_referenced(second):
            self.scene.coast.wake()

    @sees
    def after(self, first: Any, second: Any) -> None:
        """Follow a swap that was made."""
        ledger = self.scene.ledger
        if is_referenced(first) or is_referenced(second):
            with ledger.lock:
                ledger.swapped(first, second)
