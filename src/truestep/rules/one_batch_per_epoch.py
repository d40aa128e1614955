from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from truestep.events import (
    BackwardEnded,
    BatchDrawn,
    Event,
    HandStepped,
    LoaderEnded,
    LoaderStarted,
    ModelCalled,
    OptimizerStepped,
    RowsRead,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import Condition
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import loaders
from truestep.syntax import Program, Suspicion

_LEAST_PASSES = 3
_LEAST_READS = 6
_FIRST = 2
"""Reads with rows that can be new: the first one, and that after the first step, with which an optimizer is known."""
_GROWTH = 1.5
"""Growth of a table, as a memory of experience, after which the same rows are not all that there were to read."""
_MOST_OF_BATCHES = 2
"""More passes than this multiple of the batches are steps and not epochs, without other evidence of epochs."""


_READ = Condition(
    LoaderStarted.absent, lambda run: LoaderStarted in run.met or any(map(_grows, run.samples.tables.values()))
)


@dataclass(slots=True)
class _Loop:
    """Passes that start at one site and are left in their first iteration."""

    start: LoaderStarted
    going: bool = False
    """Whether the current pass can be judged."""
    drawn: int = 0
    """Number of batches drawn in the current pass."""
    trained: bool = False
    """Whether the model was trained in the current pass, and inside the loop if there is one."""
    used: bool = False
    """Whether a model was called inside the loop in the current pass."""
    evaluated: bool = False
    """Whether another loader was read to its end since this pass began."""
    passes: int = 0
    epochs: bool = True
    """Whether another loader was read to its end in each of these passes."""
    whole: bool = False
    """Whether a pass continued after its first batch, or is one of several steps between evaluations."""


class OneBatchPerEpoch(Rule):
    """The training reads the first batch of its data only: the loop over a DataLoader is left after it, in every epoch.

    What it does
    ------------
    Finds loops over a DataLoader of several batches with a body that always ends in ``return`` or ``break`` and that
    train a model on only one batch, in each of at least three passes. A ``break``, or ``next(iter(loader))`` instead of
    a loop, counts only if another loader is read to its end after each of these batches, which shows that the program
    treats the one batch as an epoch. An evaluation is reported if the loop accumulates a sum. Also finds a loop over a
    loader with batches that are replaced, before they are read, by ``next(iter(loader))``.

    Without a loader, looks up the batches of sampled steps in the tables that variables hold. Reports a table that
    grows during the training, as a memory of experience, if each of them had its first rows, and these stayed the same.

    Why it matters
    --------------
    All other batches are never used, and an epoch is a single step. The loss falls and the metric rises, but far more
    slowly: in the proof the accuracy after 12 epochs is 24 points lower. In an evaluation, the metric is that of one
    batch.

    Example
    -------
    ::

        def train_one_epoch(model, loader, optimizer):
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss.item()              # one level too deep: the loop ends here

    Fix
    ---
    Leave the function after the loop::

        def train_one_epoch(model, loader, optimizer):
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return loss.item()

    Known false alarms
    ------------------
    A ``break`` on purpose, to overfit one batch, combined with a whole evaluation in each epoch. Not reported: a
    ``break`` or ``return`` under a condition (dry runs, early stopping), one batch that is drawn before the loop and
    reused for training, iterators that stay alive (``it = iter(loader)``), random batches drawn for every step, a few
    predictions for a plot, and loaders of one batch.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
    """

    id = "one-batch-per-epoch"
    since = "0.1"
    severity = Severity.ERROR
    account = "samples"
    watches = (
        BackwardEnded, BatchDrawn, HandStepped, LoaderEnded, LoaderStarted, ModelCalled, OptimizerStepped,
    )  # fmt: skip
    needs = (_READ,)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return loaders.one_batch_per_epoch(program)

    def __init__(self) -> None:
        super().__init__()
        self._loops: dict[Site | None, _Loop] = {}
        self._unread = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("the source of a loop cannot be read" if self._unread else "")

    def suspected(self) -> bool:
        few = any(0 < loop.passes < _LEAST_PASSES and not loop.whole for loop in self._loops.values())
        return super().suspected() or few

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LoaderStarted():
                self._started(event, run)
            case BatchDrawn():
                for loop in self._loops.values():
                    if loop.going and loop.start.loader == event.loader:
                        loop.drawn += 1
                        loop.whole |= loop.drawn > 1
            case LoaderEnded():
                for loop in self._loops.values():
                    if loop.start.loader != event.loader:
                        loop.evaluated |= loop.drawn == 1
                    elif loop.going:
                        loop.whole = True
            case ModelCalled() | BackwardEnded() | OptimizerStepped() | HandStepped():
                self._used(event)

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, LoaderStarted) and event.site in self._loops:
            self._loops[event.site].passes += times

    def ended(self, event: RunEnded, run: Progress) -> None:
        for table, reads in run.samples.tables.items():
            first = all((one.least, one.most) == (0, one.read - 1) for one in reads)
            if _grows(reads) and first and not any(one.fresh for one in reads[_FIRST:]):  # else the newest come first
                self._first_rows(table, reads, run)
        for loop in self._loops.values():
            self._close(loop, run, last=True)
            steps = not (loop.start.sums or loop.epochs or loop.start.overwrites)
            if steps and loop.passes > _MOST_OF_BATCHES * _batches(loop.start.loader, run):
                self.withdraw(loop.start.site)

    def _started(self, event: LoaderStarted, run: Progress) -> None:
        self._unread |= event.left == "unread"
        for loop in self._loops.values():
            if event.loader == loop.start.loader or event.site is loop.start.site:
                self._close(loop, run)
        if event.left_at and _batches(event.loader, run) > 1:
            loop = self._loops.setdefault(event.site, _Loop(event))
            if event.overwrites:
                loop.passes += 1
                if loop.passes >= _LEAST_PASSES:
                    self._found(loop, run)
                return
            loop.start, loop.going, loop.drawn = event, True, 0
            loop.trained = loop.used = loop.evaluated = False

    def _used(self, event: ModelCalled | BackwardEnded | OptimizerStepped | HandStepped) -> None:
        for loop in self._loops.values():
            if loop.going and loop.drawn == 1:
                inside = _is_inside(event.site, loop.start)
                loop.used |= inside
                loop.trained |= not isinstance(event, ModelCalled) and (inside or loop.start.left == "next")

    def _close(self, loop: _Loop, run: Progress, *, last: bool = False) -> None:
        """Judge the pass that ends here."""
        going, loop.going = loop.going, False
        if not going or loop.whole or loop.drawn != 1:
            return
        start = loop.start
        if start.left == "return":
            failed = loop.trained or (loop.used and start.sums)
        else:
            failed = loop.trained and loop.evaluated
            loop.whole = loop.trained and not loop.evaluated and not last
            if loop.whole:
                self.withdraw(start.site)
        if not failed:
            return
        loop.passes += 1
        loop.epochs &= loop.evaluated
        if loop.passes >= _LEAST_PASSES:
            self._found(loop, run)

    def _first_rows(self, table: str, reads: list[RowsRead], run: Progress) -> None:
        """Report a table that grows, while each step reads its first rows."""
        last = reads[-1]
        draft = self.report(
            last.site,
            f"each step is made on the first {last.read} rows of `{table}`, which has {last.rows:,} in the end",
            run=run,
            label="the same rows in each step",
            help=f"draw the rows of each batch from all of `{table}`, with `random.sample` or `torch.randint`",
            cost=f"{last.rows - last.read:,} rows were stored and never used",
            confidence=Confidence.MEDIUM,
            unit="steps read",
            key=table,
        )
        draft.count = draft.total = len(reads)

    def _found(self, loop: _Loop, run: Progress) -> None:
        start = loop.start
        name, batches = run.loader_name(start.loader), _batches(start.loader, run)
        how = f"`{start.left}`"
        if start.left == "next":
            message = f"`{name}` restarts for every batch: an epoch is one of its {batches} batches"
            label, help = "always the first batch of a new pass", f"read `{name}` with a `for` loop in each epoch"
            if start.overwrites:
                message = (
                    f"each step restarts `{name}` and takes its first batch, and the batches of the loop are unused"
                )
                label, help = "replaces the batch of the loop around it", "use the batch that the loop yields"
        else:
            what = "trains" if loop.trained else "evaluates"
            message = f"the loop over `{name}` {what} on its first batch only and skips the other {batches - 1}"
            label, help = f"{how} leaves the loop in its first round", f"move the {how} out of the loop over `{name}`"
        line, column, end_line, end_column = start.left_at
        place = start.site or Site("", line)
        draft = self.report(
            Site(place.path, line, column, end_line, end_column, place.function),
            message,
            run=run,
            label=label,
            related=(Mark(start.site, "the loop"),) if start.site is not None and start.body else (),
            help=help,
            cost=f"of {batches} batches in a pass, 1 was used",
            confidence=Confidence.HIGH
            if start.overwrites or (start.left == "return" and start.sums)
            else Confidence.MEDIUM,
            unit="passes",
            key=start.site,
        )
        if draft.count == 1:
            draft.count = loop.passes


def _grows(reads: list[RowsRead]) -> bool:
    """Return True if a table grew between enough steps that read batches of one size."""
    first, last = reads[0], reads[-1]
    same = len({one.read for one in reads}) == 1
    return same and len(reads) >= _LEAST_READS and last.rows >= max(_GROWTH * first.rows, 2 * last.read)


def _batches(loader: int, run: Progress) -> int:
    met = run.loaders.get(loader)
    return (met.batches if met is not None else None) or 0


def _is_inside(site: Site | None, start: LoaderStarted) -> bool:
    """Return True if a site is within the lines of a loop."""
    if site is None or start.site is None or not start.body:
        return False
    return site.path == start.site.path and start.body[0] <= site.line <= start.body[1]
