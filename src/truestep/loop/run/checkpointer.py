"""Saving, restoring and stopping of a run, always between two steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truestep.loop.position.starts import Starts
from truestep.loop.process.terminal import say
from truestep.loop.rng.seed import rng_state, set_rng_state
from truestep.loop.settings.limits import Clock

if TYPE_CHECKING:
    from truestep.loop.loading.given import GivenLoader
    from truestep.loop.loading.loader import Loader
    from truestep.loop.log.progress_line import ProgressLine
    from truestep.loop.position.position import Place
    from truestep.loop.position.progress import RunProgress
    from truestep.loop.process.signals import Signals
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.registry import Parts, State
    from truestep.loop.run.run_state import RunState
    from truestep.loop.run.stepper import Stepper


class Checkpointer:
    """Saves a run on request, by its settings or on a signal; restores it when its first loop begins.

    Args:
        progress: of the run.
        stepper: with closed windows whenever a checkpoint is written.
        parts: the parts of the run.
        user: the user's own values, `run.state`.
        contents: writes and reads the contents of checkpoints.
        signals: handlers of signals.
        line: the progress line, cleared before the program ends.
        strategy: all ranks save and end after the same step.

    Attributes:
        starts: states at the beginning of each stretch of an epoch's body outside of its loops.
    """

    def __init__(
        self,
        progress: RunProgress,
        stepper: Stepper,
        parts: Parts,
        user: State,
        contents: RunState,
        signals: Signals,
        line: ProgressLine,
        strategy: Strategy,
    ) -> None:
        self.signals = signals
        self.saves = contents.saves
        """True if the run has a folder."""
        self.starts = Starts(parts, user)
        self._progress, self._stepper, self._parts, self._contents = progress, stepper, parts, contents
        self._line, self._strategy = line, strategy
        self._clock = Clock(progress.limits)
        self._requested: tuple[float | None, str] | None = None
        """Metric and mode of a requested checkpoint."""
        self._begun = self._asked = False
        self._epoch_rng: dict[str, Any] = {}
        self._examined: set[str] = set()
        """Names of the loaders that were checked for samples that a resumed run cannot repeat."""
        # Each process takes at least one step, even with a very short max_time.
        self._first_step = self._boundary_step = progress.global_step
        self._saved_step, self._restored_limits = -1, list[int | None]()
        if contents.loops is not None:
            self._saved_step = progress.global_step
            self._restored_limits = list(contents.loops["limits"])
            self.starts.load_state_dict(contents.loops["starts"])
        contents.keep(progress.position.carried)

    # --- restoring ---

    def begin(self) -> None:
        """Restore the checkpoint, once, when the first loop begins."""
        if self._begun:
            return
        self._begun = True
        averages = [followed.average.model for followed in self._parts.averaging.shelf.values()]
        self._strategy.begin([*self._parts.models.values(), *averages], resumed=self._progress.is_resuming)
        if self._progress.is_resuming:
            self._epoch_rng = self._contents.restore(finally_=False)["epoch"]

    def arrive(self) -> None:
        """Restore the complete checkpoint with its random states: the program has reached the place of the save."""
        set_rng_state(self._contents.restore(finally_=True)["step"])
        self._progress.position.arrive()

    def enter_epochs(self) -> bool:
        """Restore the state at the place where the loop over epochs continues; return False if the run is over."""
        position = self._progress.position
        if position.waits_for("epochs"):
            self.arrive()
        elif position.waits_for("left"):
            if self._restored_limits == self._own_limits:
                return False  # the program left this loop, and would leave it again
            self.arrive()
        elif position.is_resuming:
            set_rng_state(self._epoch_rng)
            self.starts.enter({})
        return True

    def begin_epoch(self) -> None:
        """Keep the random states at the beginning of an epoch."""
        if not self._progress.is_resuming:
            self._epoch_rng = rng_state()
            if self.saves:
                self.starts.begin_epoch(self._progress.global_step)

    def examine(self, loader: Loader | GivenLoader) -> None:
        """Warn once if a resumed run reads other samples from a loader."""
        if loader.name not in self._examined:
            self._examined.add(loader.name)
            loader.check_exact()

    def warn_of_left_out(self) -> None:
        """Warn if an optimizer trains parameters that are missing in the checkpoints."""
        if self.saves:
            self._contents.warn_of_left_out()

    # --- saving ---

    def request(self, metric: float | None, mode: str) -> None:
        """Request a checkpoint: written at the end of the current body, or immediately outside of loops.

        Args:
            metric: determines the best checkpoint; None for no comparison.
            mode: "min" or "max".
        """
        position = self._progress.position
        outside = not position.active and not position.in_epoch
        if outside:
            self.begin()
            self._progress.end_body()
            if position.count_save():
                self.arrive()
                return
        if position.is_resuming:
            return
        if metric is not None or self._requested is None:
            self._requested = (metric, mode)
        if metric is not None and not outside:
            self._contents.keep_evaluated(self._progress.global_step, position.epoch, metric, mode)
        if not position.active:
            self._stepper.no_open_window("run.save()")
            if outside:
                self._save_requested("save")

    def end(self) -> None:
        """Write the checkpoint that was requested in a loop that was left, if there is one."""
        if self._requested is not None:
            self._stepper.no_open_window("the end of the run")
            self._save_requested("left")

    def boundary(self) -> None:
        """Save and stop if due, between two steps of a loop with closed windows."""
        step, every = self._progress.global_step, self._progress.limits.save_every_n_steps
        if every and step // every > self._boundary_step // every and self._requested is None:
            self._requested = (None, "min")
        self._boundary_step = step
        self.save_and_stop("loop")

    def save_and_stop(self, place: Place) -> None:
        """Save if a checkpoint was requested or is due; raise SystemExit on a signal or after `max_time`."""
        step, signals = self._progress.global_step, self.signals
        due, received, is_over = self._strategy.agreed(self._flags, 3, at_once=place != "loop")
        if due and self._requested is None:
            self._requested = (None, "min")
        self._save_requested(place)
        if not received and not is_over:
            return
        signals.received = received
        if self.saves and self._saved_step != step:
            self._save(place, None, "min")
        self._contents.wait()
        if signals.received and not signals.obeyed():
            raise SystemExit(signals.exit_code)
        if is_over:
            self._line.close()
            say(f'truestep: max_time is over: saved at step {step}; resume="auto" goes on from there')
            raise SystemExit(0)

    def _flags(self) -> tuple[int, int, int]:
        """Return whether a save is due, the number of a signal, and whether the time is over."""
        due = self._clock.is_save_due and not self._asked
        self._asked = self._asked or due
        is_over = self._clock.is_over and self._progress.global_step > self._first_step
        return int(due), self.signals.received, int(is_over)

    def _save_requested(self, place: Place) -> None:
        if self._requested is not None:
            metric, mode = self._requested
            self._requested = None
            self._save(place, metric, mode)

    def _save(self, place: Place, metric: float | None, mode: str) -> None:
        parts, progress, measure = self._parts, self._progress, self._stepper.cadence.measure
        parts.averaging.settle()
        progress.position.note_streams(parts.loaders)
        for name in progress.position.begun - self._examined:
            loader = parts.loaders.get(name)
            if loader is not None:
                self.examine(loader)
        self._contents.save(
            step=progress.global_step,
            epoch=progress.epoch,
            loops={
                "walks": progress.position.state_dict(place),
                "global_step": progress.global_step,
                "limits": self._own_limits,
                "measure": None if measure is None else list(measure),
                "starts": self.starts.state_dict() if place == "loop" else [],
            },
            rng={"epoch": self._epoch_rng, "step": rng_state()},
            metric=metric,
            mode=mode,
        )
        self._saved_step = progress.global_step
        self._clock.saved()
        self._asked = False

    @property
    def _own_limits(self) -> list[int | None]:
        return [self._progress.limits.max_epochs, self._progress.limits.max_steps]
