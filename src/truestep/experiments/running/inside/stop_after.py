"""Stop a script after a number of optimizer steps, as `truestep run --steps` does."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.running.inside.steps import on_steps
from truestep.supervision.session import Stop


class StopAfter:
    """Raises `Stop` in the last step, or at the end of the backward pass if the step is inside one.

    Args:
        steps: number of steps of all optimizers together; of backward passes in a script without optimizers.
    """

    def __init__(self, steps: int) -> None:
        self._left = steps
        self.reached = False

    def install(self, stack: ExitStack) -> None:
        """Count steps from now on. Install it after all other hooks, so that these see the last step."""

        def run_engine(*args: Any, **kwargs: Any) -> Any:
            result = backward(*args, **kwargs)
            if self.reached and not in_engine():
                raise Stop
            return result

        def stepped(optimizer: Any) -> None:
            self._left -= 1
            self.reached = self._left <= 0
            if self.reached and not in_engine():
                raise Stop

        in_engine = seams.backward.engine_state()
        backward = seams.backward.wrap(stack, run_engine)
        on_steps(stack, stepped)
