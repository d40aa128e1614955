"""The generators that a run's loops walk over.

Between two steps, when a loop asks for its next batch, the body of the last one has ended: there, and nowhere else,
steps end, schedules catch up, checkpoints are written and signals are obeyed. A loop that is left by `break` or by an
exception does none of this, because its body did not end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from truestep.errors import BadSettings, MetricMissing, OpenWindow
from truestep.loop.loading.given import VARIES, GivenLoader
from truestep.loop.loading.loader import Loader, check_loader
from truestep.loop.log.progress_line import Completion
from truestep.loop.log.throughput import samples_in
from truestep.loop.optim.cadence import Cadence, Measure
from truestep.loop.process.at_exit import closed_at_exit
from truestep.loop.process.device import to_device
from truestep.loop.process.strategy import check_one_process
from truestep.loop.process.terminal import say
from truestep.loop.rng.seed import rng_state, set_rng_state
from truestep.loop.run.asking import asked_by_hand
from truestep.loop.run.given_loaders import GivenLoaders
from truestep.loop.run.passes import early_again, length_of, numbers
from truestep.loop.run.position import Place, Walk, Walks
from truestep.loop.run.starts import Starts
from truestep.loop.settings.limits import Clock, Limits

if TYPE_CHECKING:
    import torch

    from truestep.loop.log.logs import Logs
    from truestep.loop.log.progress_line import ProgressLine
    from truestep.loop.log.throughput import Pace
    from truestep.loop.optim.updates import Updates
    from truestep.loop.process.signals import Signals
    from truestep.loop.run.registry import Parts, State
    from truestep.loop.run.run_state import Saving

_END = object()


class Loops:
    """Walks over epochs, batches and steps; knows where the run is."""

    def __init__(
        self,
        parts: Parts,
        state: State,
        saving: Saving,
        logs: Logs,
        signals: Signals,
        limits: Limits,
        *,
        device: torch.device,
        saves: bool,
        close: Callable[[tuple[Updates, ...]], None],
        pace: Pace,
        progress: ProgressLine,
        introduce: Callable[[Any], None],
    ) -> None:
        self.global_step = 0
        self.walks = Walks()
        self.starts = Starts(parts, state)
        self.around: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        """What walks over the loops in the place of the user's program, and hands it every batch: a profile."""
        self._parts, self._saving, self._logs, self._signals = parts, saving, logs, signals
        self._limits = limits
        self._clock = Clock(limits)
        self._device = device
        self._saves = saves
        self._close = close
        self._pace, self._progress = pace, progress
        self._introduce: Callable[[Any], None] | None = introduce
        self._closed: list[Updates] = []
        """Optimizers that closed a window for the step under way, or for the one that has just ended."""
        self._boundary_step = 0
        self._given = GivenLoaders(parts)
        self._asked: tuple[float | None, str] | None = None
        self._begun = False
        self._epoch_rng: dict[str, Any] = {}
        self._saved_step = -1
        self._examined: set[str] = set()
        """Names of loaders of which it is known whether a resumed run can repeat their samples."""
        self._restored_limits: list[int | None] = []
        if saving.loops is not None:
            self.walks.load_state_dict(saving.loops["walks"])
            self.global_step = self._saved_step = self._boundary_step = saving.loops["global_step"]
            self._restored_limits = list(saving.loops["limits"])
            self.starts.load_state_dict(saving.loops["starts"])
        self._first_step = self.global_step  # a process takes one step at least, however short its time is
        self.cadence = Cadence(parts.updates, parts.schedules, limits, (saving.loops or {}).get("measure"))
        saving.keep(self.walks.habits)

    # --- what a user's loop walks over ---

    @closed_at_exit
    def epochs(self) -> Iterator[int]:
        """Give the number of each epoch, from where the run is, until it is over."""
        limits = self._limits
        if limits.max_epochs is None and limits.max_steps is None:
            raise BadSettings(
                "the run has no end",
                expected="max_epochs or max_steps",
                remedy="pass max_epochs=... to Run",
            )
        self._begin()
        walks = self.walks
        if walks.waits_for("epochs"):
            self._arrive()
        elif walks.waits_for("left"):
            if self._restored_limits == self._own_limits:
                return  # its own program ended it, and would again
            self._arrive()
        elif walks.is_resuming:
            set_rng_state(self._epoch_rng)
            self.starts.enter({})
        self._signals.install()
        try:
            while (limits.max_epochs is None or walks.epoch < limits.max_epochs) and not self._has_all_steps():
                walks.in_epoch = True
                self._given.begin_epoch()
                if not walks.is_resuming:
                    self._epoch_rng = rng_state()
                    if self._saves:
                        self.starts.begin_epoch(self.global_step)
                yield walks.epoch
                self._end_epoch()
        finally:
            walks.in_epoch = False
            self.starts.close()
            self._signals.remove()

    def train(self, loader: Loader | GivenLoader | DataLoader[Any]) -> Iterator[Any]:
        """Give the batches of one pass, from where the run is, on the run's device."""
        in_epoch = self.walks.in_epoch
        part = self._given.part(loader, in_epoch=in_epoch) if isinstance(loader, DataLoader) else check_loader(loader)
        return self._train(part)

    def _train(self, loader: Loader | GivenLoader) -> Iterator[Any]:
        self.no_open_window("the next training loop")
        self._begin()
        walk, length = self.walks.claim(loader.name), length_of(loader)
        if walk is not None and self.walks.is_spent(walk, length):
            self.walks.leave(walk)
            walk = self.walks.claim(loader.name)
        self.cadence.begin(Measure(loader.name, length, True))
        if walk is None:
            if self.walks.is_resuming:
                self.starts.enter(self.walks.ended)
            return iter(())
        if walk.resumed:
            if loader.name not in self._examined:
                self._examined.add(loader.name)
                loader.check_exact()
            loader.load_state_dict(walk.place())
        batches = loader.epoch(walk.number, walk.finished)
        if walk.resumed and walk.early[1] > walk.early[0] and self.walks.is_resuming and length is not None:
            batches = early_again(walk, loader, walk.early, walk.finished)
            walk.finished = walk.given = walk.early[0]
        return self._shown(walk, self._walk(walk, batches, length, loader.batch_size))

    def steps(self, count: int | None = None) -> Iterator[int]:
        """Give the number of each of `count` steps, or of as many as the run has, from where it is.

        A body that leaves its window open has not completed its step: the next one gets the same number.
        """
        total = count if count is not None else self._limits.max_steps
        if total is None:
            raise BadSettings("the run has no end", expected="a number of steps", remedy="write run.steps(1000)")
        self.no_open_window("the next training loop")
        self._begin()
        walk = self.walks.claim("steps")
        self.cadence.begin(Measure("steps", total, self.walks.in_epoch))
        if walk is None:
            return iter(())
        return self._shown(walk, self._walk(walk, numbers(walk, total), total, 0))

    def _shown(self, walk: Walk, batches: Iterator[Any]) -> Iterator[Any]:
        self.walks.follow(walk, batches)
        return batches if self.around is None else self.around(batches)

    @closed_at_exit
    def _walk(self, walk: Walk, batches: Iterator[Any], length: int | None, size: int) -> Iterator[Any]:
        walks = self.walks
        self._signals.install()
        try:
            by_hand = asked_by_hand()
            if walks.is_first(walk, by_hand=by_hand):
                self._pace.enter()
                self._closed.clear()
                for updates in self._parts.updates.values():
                    updates.window.begin_body()
            if self.starts.is_open:
                self.starts.end(self.global_step, by_hand=by_hand)
            if walk.is_place:
                self._arrive()
            batch = next(batches, _END)
            while batch is not _END and not self._has_all_steps():
                following: Any = None
                if length is None:
                    following = next(batches, _END)
                walk.last = following is _END if length is None else walk.finished == length - 1
                walk.given = walk.finished + 1
                moved = to_device(batch, self._device, non_blocking=True)
                if self._introduce is not None:
                    self._introduce_once(moved if size else None)
                step, waiting = self.global_step, 0 if size else self._waiting()
                yield moved
                # a body over steps that only added to a window which is still open has not completed its step
                complete = size or self.global_step > step or self._waiting() <= waiting
                if complete:
                    walk.finished = walk.given
                else:
                    walk.last = False
                if length is None:
                    batch = following
                if walks.is_first(walk):
                    samples = size
                    if walk.last or size == VARIES:
                        held = samples_in(moved)
                        samples = min(size, held) if size != VARIES else held % sys.maxsize
                    self._count_batch(samples, walk, length)
                    for updates in self._parts.updates.values():
                        updates.window.end_body()
                    if complete and self.cadence.is_watching:
                        self.cadence.body_ended()
                    if walk.last or self._has_all_steps():
                        self._close_rest()
                    self._boundary()
                if length is not None:
                    batch = next(batches, _END)
            if walks.is_first(walk) and self._parts.open_windows:  # the loader gave fewer batches than it has
                self._close_rest()
                self._boundary()
            if walks.is_first(walk):
                self.cadence.loop_ended(in_epoch=walks.in_epoch)
        finally:
            was_first = walks.first is walk
            if was_first:
                self._pace.leave()
            walks.leave(walk)
            self._given.end(walk.name, walk.number)
            if (was_first or self.starts.is_open) and self._saves and walks.in_epoch and not walks.is_resuming:
                self.starts.begin(walks.ended, self.global_step)
            self._signals.remove()

    # --- what is known of where the run is ---

    def position(self, walk: Walk | None = None, length: int | None = None) -> Completion:
        """Return where the run is.

        Args:
            walk: the one under way; None between two.
            length: its batches, where that is known.
        """
        limits, walks = self._limits, self.walks
        return Completion(
            self.global_step,
            limits.max_steps,
            walks.epoch,
            limits.max_epochs,
            walk.finished if walk is not None else 0,
            length,
            in_epoch=walks.in_epoch or walk is None,
        )

    def _introduce_once(self, batch: Any) -> None:
        introduce, self._introduce = self._introduce, None
        if introduce is not None:
            introduce(batch)
        if self._saves:
            self._saving.warn_of_left_out()

    def _count_batch(self, samples: int, walk: Walk, length: int | None) -> None:
        pace = self._pace
        pace.batches += 1
        pace.samples += samples
        if perf_counter() >= self._progress.due:
            self._progress.show(self.position(walk, length))

    # --- what happens between two steps ---

    def step_of(self, updates: Updates) -> int:
        """Return the number of the step to which the next window of an optimizer belongs."""
        return self.global_step + self._begins_step(updates)

    @property
    def over_loader(self) -> bool:
        """Whether the loop under way walks over a loader."""
        first = self.walks.first
        return first is not None and first.name != "steps"

    def count(self, updates: Updates) -> None:
        """Count a window that was closed: one step, with windows of other optimizers that close in the same body."""
        if self._begins_step(updates):
            self._closed.clear()
            self.global_step += 1
        self._closed.append(updates)

    def ends(self, updates: Updates) -> bool:
        """Return True if the micro-step under way is the last one of a pass over a loader, as far as is known."""
        first = self.walks.first
        if first is None or not first.last or first.name == "steps" or not updates.window.ends_body:
            return False
        return not (self._has_all_steps() and self._begins_step(updates))

    def _begins_step(self, updates: Updates) -> bool:
        return not self._closed or updates in self._closed

    def _waiting(self) -> int:
        """Return how many micro-steps wait in open windows."""
        return sum([updates.window.micro_steps for updates in self._parts.updates.values()])

    def _close_rest(self) -> None:
        """Update with what the windows hold at the end of a loop; drop what would be a step after the last one."""
        for group in self._parts.open_groups:
            group[0].window.warn_of_rest()
            if self._has_all_steps() and self._begins_step(group[0]):
                group[0].discard()
            else:
                self._close(group)

    def ask(self, metric: float | None, mode: str) -> None:
        """Ask for a checkpoint: at the end of the body under way, or now where no loop is."""
        walks = self.walks
        outside = not walks.active and not walks.in_epoch
        if outside:
            self._begin()
            self._closed.clear()
            if walks.count_save():
                self._arrive()
                return
        if walks.is_resuming:
            return
        if metric is not None or self._asked is None:
            self._asked = (metric, mode)
        if metric is not None and not outside:
            self._saving.keep_evaluated(self.global_step, walks.epoch, metric, mode)
        if not walks.active:
            self.no_open_window("run.save()")
            if outside:
                self._save_asked("save")

    def end(self) -> None:
        """Write the checkpoint that was asked for in a loop that was left, if there is one."""
        if self._asked is not None:
            self.no_open_window("the end of the run")
            self._save_asked("left")

    def _save_asked(self, place: Place) -> None:
        if self._asked is not None:
            metric, mode = self._asked
            self._asked = None
            self._save(place, metric, mode)

    def no_open_window(self, where: str) -> None:
        """Refuse to go on where a loop was left in the middle of a window.

        Args:
            where: what is about to begin, for the message.

        Raises:
            OpenWindow: gradients wait for an update, and no loop is under way that could still complete them.
        """
        waiting = self._parts.open_windows
        if waiting and not self.walks.active:
            window = waiting[0].window
            raise OpenWindow(
                f"gradients of {window.micro_steps} of {window.accumulate} micro-steps wait for an update at {where}",
                expected=f'closed windows, got an open one for "{waiting[0].name}"',
                remedy="call run.flush() after the loop to update with what there is, or run.discard() to drop it",
            )

    def _boundary(self) -> None:
        self._parts.averaging.settle()
        for updates in self._parts.updates.values():
            updates.schedule()
        self._closed.clear()
        if self._parts.open_windows:
            return
        every = self._limits.save_every_n_steps
        if every and self.global_step // every > self._boundary_step // every and self._asked is None:
            self._asked = (None, "min")
        self._boundary_step = self.global_step
        self._obey("loop")

    def _obey(self, place: Place) -> None:
        """Save where it was asked for, and end where a signal asked for that."""
        if self._clock.is_save_due and self._asked is None:
            self._asked = (None, "min")
        self._save_asked(place)
        is_over = self._clock.is_over and self.global_step > self._first_step
        if self._signals.received or is_over:
            if self._saves and self._saved_step != self.global_step:
                self._save(place, None, "min")
            self._saving.wait()
            if self._signals.received:
                if not self._signals.obeyed():
                    raise SystemExit(self._signals.exit_code)
            if is_over:
                self._progress.close()
                say(f'truestep: max_time is over: saved at step {self.global_step}; resume="auto" goes on from there')
                raise SystemExit(0)

    def _save(self, place: Place, metric: float | None, mode: str) -> None:
        self._parts.averaging.settle()
        self.walks.note_streams(self._parts.loaders)
        for name in self.walks.begun - self._examined:
            loader = self._parts.loaders.get(name)
            if loader is not None:
                self._examined.add(name)
                loader.check_exact()
        self._saving.save(
            step=self.global_step,
            epoch=self.walks.epoch,
            loops={
                "walks": self.walks.state_dict(place),
                "global_step": self.global_step,
                "limits": self._own_limits,
                "measure": None if (measure := self.cadence.measure) is None else list(measure),
                "starts": self.starts.state_dict() if place == "loop" else [],
            },
            rng={"epoch": self._epoch_rng, "step": rng_state()},
            metric=metric,
            mode=mode,
        )
        self._saved_step = self.global_step
        self._clock.saved()

    def _end_epoch(self) -> None:
        self.no_open_window("the end of the epoch")
        self.walks.end_epoch()
        for updates in self._parts.updates.values():
            updates.schedule()
        self._closed.clear()
        self.cadence.epoch_ended(self.walks.epoch, self.global_step)
        self._schedule_epoch()
        self._parts.averaging.end_epoch()
        self._logs.flush()
        self._progress.end_epoch(self.position())
        self._logs.end_epoch()
        self._obey("epochs")

    def _schedule_epoch(self) -> None:
        planned = [s for s in self._parts.schedules.values() if s.every == "epoch"]
        if any(s.metric for s in planned):
            self._logs.flush()
        for schedule in planned:
            if not schedule.metric:
                schedule.scheduler.step()
            elif schedule.metric in self._logs.last:
                schedule.scheduler.step(self._logs.last[schedule.metric])
            else:
                raise MetricMissing(
                    f'the schedule "{schedule.name}" follows "{schedule.metric}", which was not logged in this epoch',
                    expected=f"a value every epoch; logged so far: {sorted(self._logs.last)}",
                    remedy=f'write run.log({{"{schedule.metric}": value}}) in the body of the epoch',
                )

    # --- beginning ---

    def _begin(self) -> None:
        """Take up the checkpoint, once, when the first loop begins."""
        if self._begun:
            return
        self._begun = True
        check_one_process()  # a process group may have been made after the run
        if self.walks.is_resuming:
            self._epoch_rng = self._saving.restore(finally_=False)["epoch"]

    def _arrive(self) -> None:
        """Go on where the checkpoint was made: with all that it holds, and its random numbers."""
        set_rng_state(self._saving.restore(finally_=True)["step"])
        self.walks.arrive()

    @property
    def _own_limits(self) -> list[int | None]:
        return [self._limits.max_epochs, self._limits.max_steps]

    def _has_all_steps(self) -> bool:
        return self._limits.max_steps is not None and self.global_step >= self._limits.max_steps
