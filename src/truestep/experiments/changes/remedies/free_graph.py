"""The remedy for graphs that are retained without need: the backward pass frees them."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.aimed import Aimed
from truestep.seams.patch import patch


class FreeGraph(Aimed):
    """`backward(retain_graph=True)` at the line of the finding frees its graph, as without the flag."""

    name = "free-graph"
    remedies = ("retain-graph-in-loop",)

    def aim(self, stack: ExitStack) -> None:
        import torch

        def _engine_run_backward(
            outputs: Any, gradients: Any, keep: Any, create: Any, *args: Any, **kwargs: Any
        ) -> Any:
            if keep and not create and torch._C._current_graph_task_id() == -1 and self.at(sys._getframe(1)):
                self.applied += 1
                keep = False
            return backward(outputs, gradients, keep, create, *args, **kwargs)

        backward = patch(stack, torch.autograd, "_engine_run_backward", _engine_run_backward)
