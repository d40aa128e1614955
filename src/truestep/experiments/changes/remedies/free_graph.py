"""The remedy for graphs that are retained without need: the backward pass frees them."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.aimed import Aimed


class FreeGraph(Aimed):
    """`backward(retain_graph=True)` at the line of the finding frees its graph, as without the flag."""

    name = "free-graph"
    remedies = ("retain-graph-in-loop",)

    def aim(self, stack: ExitStack) -> None:
        def run_engine(outputs: Any, gradients: Any, keep: Any, create: Any, *args: Any, **kwargs: Any) -> Any:
            if keep and not create and not in_engine() and self.at(sys._getframe(1)):
                self.applied += 1
                keep = False
            return backward(outputs, gradients, keep, create, *args, **kwargs)

        in_engine = seams.backward.engine_state()
        backward = seams.backward.wrap(stack, run_engine)
