"""The global step, the epoch and the position of a run: the state that steps and loops share.

`RunProgress` knows neither optimizers nor loaders. `Stepper` counts windows in it, `Loops` moves its position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truestep.loop.log.progress_line import Completion
from truestep.loop.position.position import Position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truestep.loop.optim.window import Window
    from truestep.loop.position.passes import LoopPass
    from truestep.loop.settings.limits import Limits


class RunProgress:
    """The progress of a run.

    Args:
        limits: of the run.

    Attributes:
        global_step: closed windows. Windows of several optimizers that close in one body are one step.
        position: the epoch, and the passes of the loops under way.

    Example:
        >>> from truestep.loop.optim.window import Window
        >>> from truestep.loop.settings.limits import Limits
        >>> progress, generator, critic = RunProgress(Limits(max_steps=2)), Window(), Window()
        >>> progress.count(generator), progress.count(critic), progress.global_step
        (None, None, 1)
        >>> progress.count(generator), progress.global_step, progress.has_all_steps  # a second time: another step
        (None, 2, True)
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.global_step = 0
        self.position = Position()
        # Windows that were closed in the current body, or in the one that has just ended.
        self._closed: list[Window] = []

    def load_state_dict(self, loops: Mapping[str, Any]) -> None:
        """Load step and position from entry "loops" of a checkpoint."""
        self.position.load_state_dict(loops["walks"])
        self.global_step = loops["global_step"]

    @property
    def epoch(self) -> int:
        """Number of completed epochs, which is the index of the current one."""
        return self.position.epoch

    @property
    def is_resuming(self) -> bool:
        """Return True until the program has reached the place where the checkpoint was made."""
        return self.position.is_resuming

    @property
    def has_all_steps(self) -> bool:
        """Return True if `max_steps` steps were taken."""
        most = self.limits.max_steps
        return most is not None and self.global_step >= most

    @property
    def over_loader(self) -> bool:
        """Return True if the current loop iterates over a loader."""
        first = self.position.first
        return first is not None and first.name != "steps"

    def begins_step(self, window: Window) -> bool:
        """Return True if closing the window begins a new step."""
        return not self._closed or window in self._closed

    def count(self, window: Window) -> None:
        """Count a window that was closed."""
        if self.begins_step(window):
            self._closed.clear()
            self.global_step += 1
        self._closed.append(window)

    def step_of(self, window: Window) -> int:
        """Return the number of the step to which the open window of an optimizer belongs."""
        return self.global_step + self.begins_step(window)

    def ends(self, window: Window) -> bool:
        """Return True if the current micro-step is, as far as known, the last one of a pass over a loader."""
        first = self.position.first
        if first is None or not first.last or first.name == "steps" or not window.ends_body:
            return False
        return not (self.has_all_steps and self.begins_step(window))

    def end_body(self) -> None:
        """Let the next window that closes begin a new step."""
        self._closed.clear()

    def completion(self, current: LoopPass | None = None, length: int | None = None) -> Completion:
        """Return how much of the run is done.

        Args:
            current: the pass under way; None between two passes.
            length: number of its batches; None if unknown.
        """
        limits, position = self.limits, self.position
        return Completion(
            self.global_step,
            limits.max_steps,
            position.epoch,
            limits.max_epochs,
            current.finished if current is not None else 0,
            length,
            in_epoch=position.in_epoch or current is None,
        )
