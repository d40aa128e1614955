from __future__ import annotations

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
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_PASSES = 3
_MOST_OF_BATCHES = 2
"""More passes than so many times the batches are not epochs but steps, where nothing else tells an epoch."""


@dataclass(slots=True)
class _Loop:
    """The passes that begin at one site and are left in their first round."""

    start: LoaderStarted
    going: bool = False
    """Whether a pass is under way that can be judged."""
    drawn: int = 0
    """Batches drawn in the pass under way."""
    trained: bool = False
    """Whether the model was trained in the pass under way: inside the loop where there is one."""
    used: bool = False
    """Whether a model was called inside the loop in the pass under way."""
    evaluated: bool = False
    """Whether another loader was read to its end since this pass began."""
    passes: int = 0
    epochs: bool = True
    """Whether another loader was read to its end in each of them."""
    whole: bool = False
    """Whether some pass went on after its first batch, or is one step of several between evaluations."""


class OneBatchPerEpoch(Rule):
    """The loop over a DataLoader is left after its first batch, in every epoch.

    What it does
    ------------
    Finds loops over a DataLoader of several batches whose body always ends in ``return`` or ``break``, and that train a
    model on one batch only, in each of three passes or more. A ``break``, and ``next(iter(loader))`` in the place of a
    loop, count only where another loader is read to its end after each of these batches: then that one batch is what
    the program takes for an epoch. An evaluation is reported where the loop that is left adds something up.

    Why it matters
    --------------
    All other batches are never used, and an epoch is a single step. The loss falls and the metric rises, only far
    slower: in the proof 12 epochs end 24 points of accuracy lower. In an evaluation the metric is that of one batch.

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
    Leave the loop when it is done::

        def train_one_epoch(model, loader, optimizer):
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            return loss.item()

    Known false alarms
    ------------------
    A ``break`` that is left in on purpose to overfit one batch, beside a whole evaluation in each epoch. Quiet are a
    ``break`` or ``return`` under a condition (dry runs, early stopping), one batch that is drawn before the loop and
    trained on again and again, iterators that live on (``it = iter(loader)``), random batches drawn for every step, a
    few predictions made for a picture, and loaders of one batch.

    References
    ----------
    - https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html
    """

    id = "one-batch-per-epoch"
    since = "0.1"
    severity = Severity.ERROR
    watches = (
        BackwardEnded, BatchDrawn, HandStepped, LoaderEnded, LoaderStarted, ModelCalled, OptimizerStepped,
    )  # fmt: skip
    needs = (LoaderStarted,)

    def __init__(self) -> None:
        super().__init__()
        self._loops: dict[Site | None, _Loop] = {}
        self._unread = False

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("the source of a loop cannot be read" if self._unread else "")

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
            case _:
                pass

    def again(self, event: Event, times: int) -> None:
        if isinstance(event, LoaderStarted) and event.site in self._loops:
            self._loops[event.site].passes += times

    def ended(self, event: RunEnded, run: Progress) -> None:
        for loop in self._loops.values():
            self._close(loop, run, last=True)
            steps = not (loop.start.sums or loop.epochs)
            if steps and loop.passes > _MOST_OF_BATCHES * _batches(loop.start.loader, run):
                self.withdraw(loop.start.site)

    def _started(self, event: LoaderStarted, run: Progress) -> None:
        self._unread |= event.left == "unread"
        for loop in self._loops.values():
            if event.loader == loop.start.loader or event.site is loop.start.site:
                self._close(loop, run)
        if event.left_at and _batches(event.loader, run) > 1:
            loop = self._loops.setdefault(event.site, _Loop(event))
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

    def _found(self, loop: _Loop, run: Progress) -> None:
        start = loop.start
        name, batches = run.loader_name(start.loader), _batches(start.loader, run)
        how = f"`{start.left}`"
        if start.left == "next":
            message = f"`{name}` begins anew for every batch: an epoch is one of its {batches} batches"
            label, help = "always the first batch of a new pass", f"go over `{name}` with a `for` loop in each epoch"
        else:
            what = "trains" if loop.trained else "evaluates"
            message = f"the loop over `{name}` {what} on its first batch only and leaves out the other {batches - 1}"
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
            confidence=Confidence.HIGH if start.left == "return" and start.sums else Confidence.MEDIUM,
            unit="passes",
            key=start.site,
        )
        if draft.count == 1:
            draft.count = loop.passes


def _batches(loader: int, run: Progress) -> int:
    met = run.loaders.get(loader)
    return (met.batches if met is not None else None) or 0


def _is_inside(site: Site | None, start: LoaderStarted) -> bool:
    """Whether a site lies in the lines of a loop."""
    if site is None or start.site is None or not start.body:
        return False
    return site.path == start.site.path and start.body[0] <= site.line <= start.body[1]
