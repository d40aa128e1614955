"""The generators behind the loops of a run.

When a loop requests its next batch, the body of the previous one has ended. Only there, between two steps, do steps
end, schedules catch up, checkpoints get written and signals take effect. A loop that is left by `break` or by an
exception skips all of this, because its body did not end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from truestep.errors import BadSettings
from truestep.loop.loading.given import VARIES, GivenLoader
from truestep.loop.loading.loader import Loader, check_loader
from truestep.loop.log.throughput import samples_in
from truestep.loop.optim.cadence import Measure
from truestep.loop.optim.schedulers import step_after_epoch
from truestep.loop.position.given_loaders import GivenLoaders
from truestep.loop.position.next_calls import requested_by_next
from truestep.loop.position.passes import LoopPass, early_again, length_of, numbers
from truestep.loop.process.at_exit import closed_at_exit
from truestep.loop.process.device import to_device
from truestep.loop.ranks.sampler import begin_epoch, check_sampler

if TYPE_CHECKING:
    import torch

    from truestep.loop.position.progress import RunProgress
    from truestep.loop.ranks.strategy import Strategy
    from truestep.loop.run.checkpointer import Checkpointer
    from truestep.loop.run.logging import RunLog
    from truestep.loop.run.registry import Parts
    from truestep.loop.run.stepper import Stepper

_END = object()
_MOST_EMPTY_PASSES = 1000


class Loops:
    """The loops of a run over epochs, batches and steps.

    Args:
        progress: of the run; the loops move its position.
        stepper: closes the windows that are open at the end of a loop.
        checkpointer: saves, restores and stops between two steps.
        log: counts batches and draws the progress line.
        parts: with the loaders and schedules of the run.
        device: receives the batches.
        strategy: the ranks of the run, which must have equally many batches.

    Attributes:
        around: wraps the iterator of each loop, as a profile does; None for the plain iterator.
    """

    def __init__(
        self,
        progress: RunProgress,
        stepper: Stepper,
        checkpointer: Checkpointer,
        log: RunLog,
        parts: Parts,
        device: torch.device,
        strategy: Strategy,
    ) -> None:
        self.around: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        self._progress, self._stepper, self._checkpointer, self._log = progress, stepper, checkpointer, log
        self._parts, self._device, self._strategy = parts, device, strategy
        self._given = GivenLoaders(parts)
        self._introduced = False
        self._empty_passes = 0

    # --- the iterators ---

    @closed_at_exit
    def epochs(self) -> Iterator[int]:
        """Yield the number of each epoch, from the position of the run to its end."""
        progress, checkpointer = self._progress, self._checkpointer
        limits, position = progress.limits, progress.position
        if limits.max_epochs is None and limits.max_steps is None:
            raise BadSettings(
                "the run has no end",
                expected="expected max_epochs or max_steps",
                remedy="pass max_epochs=... to Run",
            )
        checkpointer.begin()
        if not checkpointer.enter_epochs():
            return
        checkpointer.signals.install()
        try:
            while (limits.max_epochs is None or position.epoch < limits.max_epochs) and not progress.has_all_steps:
                position.in_epoch = True
                self._given.begin_epoch()
                checkpointer.begin_epoch()
                yield position.epoch
                self._end_epoch()
        finally:
            position.in_epoch = False
            checkpointer.starts.close()
            checkpointer.signals.remove()

    def train(self, loader: Loader | GivenLoader | DataLoader[Any]) -> Iterator[Any]:
        """Return an iterator over the batches of one pass on the run's device, from the position of the run."""
        in_epoch = self._progress.position.in_epoch
        part = self._given.part(loader, in_epoch=in_epoch) if isinstance(loader, DataLoader) else check_loader(loader)
        return self._train(part)

    def _train(self, loader: Loader | GivenLoader) -> Iterator[Any]:
        position, several = self._progress.position, self._strategy.world_size > 1
        self._enter("run.train()")
        if several and isinstance(loader, GivenLoader):
            check_sampler(loader.loader)
        streams = several and isinstance(loader, Loader) and loader.streams
        current, length = position.claim(loader.name), None if streams else length_of(loader)
        if current is not None and position.is_spent(current, length):
            position.leave(current)
            current = position.claim(loader.name)
        self._stepper.cadence.begin(Measure(loader.name, length, True))
        if current is None:
            if position.is_resuming:
                self._checkpointer.starts.enter(position.ended)
            return iter(())
        if current.resumed:
            self._checkpointer.examine(loader)
            loader.load_state_dict(current.loader_state())
        if isinstance(loader, GivenLoader):
            begin_epoch(loader.loader, current.number)
        batches = loader.epoch(current.number, current.finished)
        if current.resumed and current.early[1] > current.early[0] and position.is_resuming and length is not None:
            batches = early_again(current, loader, current.early, current.finished)
            current.finished = current.given = current.early[0]
        weight = loader.weight if several and isinstance(loader, Loader) else None
        return self._shown(current, self._iterate(current, batches, length, loader.batch_size, weight))

    def steps(self, count: int | None = None) -> Iterator[int]:
        """Return an iterator over the numbers of `count` steps, or up to `max_steps`, from the position of the run.

        A body that leaves its window open has not completed its step: the next one gets the same number.
        """
        progress = self._progress
        total = count if count is not None else progress.limits.max_steps
        if total is None:
            raise BadSettings(
                "the run has no end", expected="expected a number of steps", remedy="write run.steps(1000)"
            )
        self._enter("run.steps()")
        current = progress.position.claim("steps")
        self._stepper.cadence.begin(Measure("steps", total, progress.position.in_epoch))
        if current is None:
            return iter(())
        return self._shown(current, self._iterate(current, numbers(current, total), total, 0))

    def _enter(self, call: str) -> None:
        """Prepare a pass over batches or steps; raise BadSettings in an endless loop around passes without any."""
        if self._progress.has_all_steps:
            self._empty_passes += 1
        if self._empty_passes >= _MOST_EMPTY_PASSES:
            raise BadSettings(
                f"{call} was called {self._empty_passes:,} times after the last of "
                f"max_steps={self._progress.limits.max_steps} steps",
                expected="expected the loop around it to end with the run",
                remedy="leave that loop when `run.global_step` reaches max_steps, or loop over `run.epochs()`",
            )
        self._stepper.no_open_window("the next training loop")
        self._checkpointer.begin()

    def _shown(self, current: LoopPass, batches: Iterator[Any]) -> Iterator[Any]:
        self._progress.position.follow(current, batches)
        return batches if self.around is None else self.around(batches)

    @closed_at_exit
    def _iterate(
        self,
        current: LoopPass,
        batches: Iterator[Any],
        length: int | None,
        size: int,
        weight: Callable[[int], float] | None = None,
    ) -> Iterator[Any]:
        """Yield the batches of a pass; end a step between two of them if the pass is the leading one.

        Args:
            current: the pass.
            batches: its batches from its position, or step numbers.
            length: their number; None if unknown, in which case the next batch is read before the body runs.
            size: samples in a batch; 0 for step numbers.
            weight: returns the factor of this rank's mean loss of a batch; None for a single process.
        """
        progress, stepper, strategy = self._progress, self._stepper, self._strategy
        position = progress.position
        self._checkpointer.signals.install()
        try:
            self._begin_pass(current, by_hand=requested_by_next())
            batch = self._next(batches, length)
            while batch is not _END and not progress.has_all_steps:
                following: Any = None
                if length is None:
                    following = self._next(batches, length)
                current.last = following is _END if length is None else current.finished == length - 1
                current.given = current.finished + 1
                moved = to_device(batch, self._device, non_blocking=True)
                if not self._introduced:
                    self._introduce(moved if size else None)
                step, waiting = progress.global_step, 0 if size else stepper.index.waiting_micro_steps
                if weight is not None and position.is_first(current):
                    strategy.weight = weight(current.finished)
                yield moved
                strategy.weight = 1.0
                # A body of `run.steps()` that only added to a window which is still open has not completed its step.
                complete = bool(size) or progress.global_step > step or stepper.index.waiting_micro_steps <= waiting
                if complete:
                    current.finished = current.given
                else:
                    current.last = False
                if length is None:
                    batch = following
                if position.is_first(current):
                    samples = size
                    if current.last or size == VARIES:
                        held = samples_in(moved)
                        samples = min(size, held) if size != VARIES else held % sys.maxsize
                    self._log.count_batch(samples * strategy.world_size, current, length)
                    stepper.end_body(complete=complete)
                    if current.last or progress.has_all_steps:
                        stepper.close_rest()
                    self._boundary()
                if length is not None:
                    batch = next(batches, _END)
            if position.is_first(current):
                if stepper.index.open_windows:  # the loader had fewer batches than its length
                    stepper.close_rest()
                    self._boundary()
                stepper.cadence.loop_ended(in_epoch=position.in_epoch)
        finally:
            self._end_pass(current)

    def _next(self, batches: Iterator[Any], length: int | None) -> Any:
        """Return the next batch; the end, for all ranks of a pass without a length, if one of them has no batch."""
        batch = next(batches, _END)
        if length is None and not self._strategy.all_have(batch is not _END):
            return _END
        return batch

    def _begin_pass(self, current: LoopPass, *, by_hand: bool) -> None:
        """Begin a pass at the request for its first batch."""
        checkpointer = self._checkpointer
        if self._progress.position.is_first(current, by_hand=by_hand):
            self._log.pace.enter()
            self._stepper.begin_loop()
        if checkpointer.starts.is_open:
            checkpointer.starts.end(self._progress.global_step, by_hand=by_hand)
        if current.is_place:
            checkpointer.arrive()

    def _end_pass(self, current: LoopPass) -> None:
        """End a pass after its last batch, or when its loop was left."""
        checkpointer, position = self._checkpointer, self._progress.position
        was_first = position.first is current
        if was_first:
            self._log.pace.leave()
        position.leave(current)
        self._given.end(current.name, current.number)
        starts = checkpointer.starts
        if (was_first or starts.is_open) and checkpointer.saves and position.in_epoch and not position.is_resuming:
            starts.begin(position.ended, self._progress.global_step)
        checkpointer.signals.remove()

    def _introduce(self, batch: Any) -> None:
        """Write the line about model and data before the first body; warn if checkpoints would be incomplete."""
        self._introduced = True
        self._log.introduce(batch)
        self._checkpointer.warn_of_left_out()

    # --- between two steps ---

    def _boundary(self) -> None:
        self._stepper.settle()
        if not self._stepper.index.open_windows:
            self._checkpointer.boundary()

    def _end_epoch(self) -> None:
        progress, stepper, log = self._progress, self._stepper, self._log
        stepper.no_open_window("the end of the epoch")
        progress.position.end_epoch()
        stepper.end_epoch()
        step_after_epoch(self._parts.schedules.values(), log.logs, self._strategy.of_first)
        self._parts.averaging.end_epoch()
        log.end_epoch()
        self._checkpointer.save_and_stop("epochs")
