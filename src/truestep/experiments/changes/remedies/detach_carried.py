"""The remedy for states that carry their graph from step to step: detach them before they enter a module."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.aimed import Aimed
from truestep.experiments.changes.parts.calls import hook_in_silence


class DetachCarried(Aimed):
    """Positional arguments of a module that were computed before the latest backward pass are detached.

    From then on the backward pass at the line of the finding frees its graph, as without `retain_graph=True`. Keyword
    arguments, and states carried by operations outside of modules, are not affected.
    """

    name = "detach-carried"
    remedies = ("hidden-state-not-detached",)
    silences = True

    def aim(self, stack: ExitStack) -> None:
        import torch
        from torch.nn.modules import module as modules
        from torch.utils._pytree import tree_map_only

        now = torch._C._autograd._get_sequence_nr
        compiling, in_engine = torch.compiler.is_compiling, seams.backward.engine_state()
        latest = [0]

        def cut(tensor: Any) -> Any:
            if tensor.grad_fn is None or tensor.grad_fn._sequence_nr() >= latest[0]:
                return tensor
            self.applied += 1
            return tensor.detach()

        def enters(module: Any, args: Any) -> Any:
            if compiling() or not self.aims or not latest[0] or in_engine():
                return None
            before = self.applied
            cleaned = tree_map_only(torch.Tensor, cut, args)
            return cleaned if self.applied > before else None

        def run_engine(outputs: Any, gradients: Any, keep: Any, create: Any, *args: Any, **kwargs: Any) -> Any:
            if in_engine():
                return backward(outputs, gradients, keep, create, *args, **kwargs)
            if keep and not create and self.applied and self.at(sys._getframe(1)) is not None:
                keep = False
            result = backward(outputs, gradients, keep, create, *args, **kwargs)
            latest[0] = now()
            return result

        stack.callback(modules.register_module_forward_pre_hook(enters).remove)
        hook_in_silence(stack)
        backward = seams.backward.wrap(stack, run_engine)
