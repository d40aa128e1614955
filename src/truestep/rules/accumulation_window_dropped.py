from __future__ import annotations

from dataclasses import dataclass

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_EPOCHS = 2
_LEAST_SIZES = 3
"""Windows of an epoch: the first one, a whole one, and another."""
_MOST_SIZES = 8
_LEAST_WINDOW = 2
_LEAST_SHARE = 0.2
"""Share of the batches of an epoch; leaving out fewer does no measurable harm, as with ``drop_last``."""


@dataclass(slots=True)
class _Windows:
    """Steps of one optimizer at one line, each on the gradients of several batches."""

    loader: int
    """The loader of the latest window."""
    size: int = 0
    """Batches in a window."""
    early: int = 0
    """Batches of the first window of each epoch, where it is smaller than the others: 1 for ``number % 4 == 0``."""
    regular: bool = True
    """Whether all windows had the same size, and the rest of an epoch never got a separate step."""
    dropped: int = 0
    leaked: int = 0
    short: int = 0
    """Number of epochs with a first window of one batch, whole windows behind it, and a rest at the end."""


class AccumulationWindowDropped(Rule):
    """The first or the last batches of each epoch do not fill an accumulation window.

    What it does
    ------------
    Counts the batches behind each step. Reports a loop if every step uses the same number of batches, or the first step
    of each epoch uses one (``number % 4 == 0`` with a number that begins at 0), and at least a fifth of the batches
    remain at the end of at least two epochs. The message says if
    their gradients are cleared unused or carried over into the first step of the next epoch.

    Also reports a loop in which the first step of each epoch is made on its first batch alone, and the others on whole
    windows, up to a rest at the end that is stepped on or cleared: ``number % 4 == 0`` with a number that begins at 0.

    Why it matters
    --------------
    If the gradients are cleared, these backward passes are wasted, and the model learns from fewer steps and less data:
    in the proof, with windows of 4 in an epoch of 7 batches, accuracy falls by 17 points. If they are carried over, one
    step of each epoch is larger than the others, and one step is missing: 8 points. Longer training compensates. The
    first step on one batch, if its loss is divided by the length of a window, has a gradient that is as many times too
    small.

    Example
    -------
    ::

        for epoch in range(epochs):
            optimizer.zero_grad()
            for number, (x, y) in enumerate(loader, start=1):       # 7 batches
                (criterion(model(x), y) / 4).backward()
                if number % 4 == 0:                                 # 3 of them are never stepped on
                    optimizer.step()
                    optimizer.zero_grad()

    Fix
    ---
    Step at the end of the loader too::

        if number % 4 == 0 or number == len(loader):
            optimizer.step()
            optimizer.zero_grad()

    Known false alarms
    ------------------
    None known. Not reported: windows that continue across the end of an epoch, windows of different sizes, loops that
    are left early, loaders without a length, a rest of less than a fifth of an epoch, and a first window of one batch
    that is the rest itself (whole windows are left for the end), or of batches of different sizes.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    id = "accumulation-window-dropped"
    since = "0.1"
    severity = Severity.WARNING
    account = "gradients"
    watches = (
        ev.BackwardEnded,
        ev.BatchDrawn,
        ev.GradientsZeroed,
        ev.HandStepped,
        ev.LoaderEnded,
        ev.OptimizerStepped,
        ev.ScalerStepped,
    )
    needs = (ev.BackwardEnded, ev.LoaderEnded)

    def __init__(self) -> None:
        super().__init__()
        self._windows: dict[tuple[int, Site | None], _Windows] = {}
        self._latest: tuple[int, Site | None] | None = None
        """Optimizer and line of the latest step on a window."""
        self._drawn: set[int] = set()
        self._accumulates = False
        self._first = True
        """True before the first step of an epoch."""
        self._sizes: list[int] = []
        """Batches behind each step of the current epoch, of which equal ones in a row are entered twice."""
        self._of_steps: int | None = None
        """The loader of the latest step."""
        self._ended = False
        """True from the end of the loader to the next backward pass on one of its batches."""
        self._open()

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._accumulates else ev.WindowMeasured.absent)

    def _open(self) -> None:
        self._loader: int | None = None
        self._pending = 0
        """Number of batches with a backward pass since the latest step or clearing."""
        self._tail = 0
        """Value of `_pending` at the end of the loader."""
        self._backward: Site | None = None

    def suspected(self) -> bool:
        return super().suspected() or any(w.regular and w.dropped + w.leaked > 0 for w in self._windows.values())

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BatchDrawn():
                self._drawn.add(event.loader)
            case ev.BackwardEnded(in_step=False) if event.written:
                self._add(event, run)
            case ev.LoaderEnded():
                self._end(event.loader)
            case ev.GradientsZeroed(fresh=fresh) if fresh and self._concerns(event, run):
                self._clear(event.site, run)
            case ev.OptimizerStepped():
                self._step(event, run)
                self._open()
            case ev.HandStepped() | ev.ScalerStepped(skipped=True):
                self._open()

    def _add(self, event: ev.BackwardEnded, run: Progress) -> None:
        if self._pending and not event.onto_fresh and event.written == event.observed:
            self._clear(None, run)  # by hand
        loader = event.loader
        if loader is None or loader not in self._drawn:  # another loss of the same batch
            return
        self._drawn.discard(loader)
        if self._ended:
            self._judge_first(run)
        if self._loader not in (None, loader):
            self._give_up()
        self._loader, self._backward = loader, event.site
        self._pending += 1
        self._accumulates |= self._pending > 1

    def ended(self, event: ev.RunEnded, run: Progress) -> None:
        if self._ended and event.how == "finished":
            self._judge_first(run)

    def _judge_first(self, run: Progress) -> None:
        """Judge the windows of the epoch that has ended."""
        sizes, self._sizes, self._ended = self._sizes, [], False
        windows = self._windows.get(self._latest) if self._latest is not None else None
        if windows is None or not _LEAST_SIZES <= len(sizes) < _MOST_SIZES or sizes[0] != 1 or sizes[1] < _LEAST_WINDOW:
            return
        met, size = run.loaders.get(windows.loader), sizes[1]
        rest = ((met.batches or 1) - 1) % size if met is not None and met.batch_size else 0
        whole = sizes[1:-1] if sizes[-1] == rest else sizes[1:]
        if not rest or any(one != size for one in whole):
            return
        windows.short += 1
        if windows.short >= _LEAST_EPOCHS:
            self._report_first(windows, size, run)

    def _report_first(self, windows: _Windows, size: int, run: Progress) -> None:
        key = self._latest
        assert key is not None
        draft = self.report(
            key[1],
            f"the first step of each epoch is made on one batch, and the others on {size}",
            run=run,
            label=f"steps on the first batch, and then after every {size}",
            related=() if self._backward is None else (Mark(self._backward, "computes the gradients"),),
            help="count the batches from 1, as by `(number + 1) % window == 0`",
            cost=f"a window of one batch in each epoch, where the others have {size} (counted)",
            confidence=Confidence.MEDIUM,
            unit="epochs",
            key=("first", key),
        )
        draft.count = max(draft.count, windows.short)

    def _end(self, loader: int) -> None:
        if loader == self._loader:
            if self._tail:  # a window as long as several epochs
                self._give_up()
            self._tail = self._pending
            self._first = True
        if loader == self._of_steps:
            self._ended = True

    def _give_up(self) -> None:
        """Stop judging the latest windows: the remaining batches are used, or the windows differ in size."""
        windows = self._windows.get(self._latest) if self._latest is not None else None
        if windows is not None:
            windows.regular = False
            self.withdraw(self._latest)

    def _step(self, event: ev.OptimizerStepped, run: Progress) -> None:
        loader, pending, tail = self._loader, self._pending, self._tail
        if loader is None or not event.fresh:
            return
        self._of_steps = loader
        if self._sizes[-2:] != [pending, pending]:  # whole windows in a row are entered twice
            self._sizes.append(pending)
            del self._sizes[_MOST_SIZES:]
        self._latest = key = (event.optimizer, event.site)
        windows = self._windows.setdefault(key, _Windows(loader))
        windows.loader = loader
        first, self._first = self._first, False
        if not tail and windows.size in (0, pending):
            windows.size = pending
        elif not tail and windows.size == 1 and not windows.early:
            windows.size, windows.early = pending, 1
        elif not tail and first and pending == windows.early:
            pass
        elif tail and not windows.early and pending == tail + windows.size and self._is_left_over(windows, run):
            windows.leaked += 1
            if windows.leaked >= _LEAST_EPOCHS:
                self._report_leak(windows, run)
        else:
            self._give_up()

    def _concerns(self, event: ev.GradientsZeroed, run: Progress) -> bool:
        """Return True if a call clears gradients of the latest window's optimizer."""
        number = self._latest[0] if self._latest is not None else None
        if event.optimizer is not None or event.model is None:
            return event.optimizer in (None, number)
        model = run.models.get(event.model)
        return model is None or any(number in run.held_by.get(held, ()) for held in model.parameters)

    def _clear(self, site: Site | None, run: Progress) -> None:
        windows = self._windows.get(self._latest) if self._latest is not None else None
        if windows is not None and self._tail and self._tail == self._pending and self._loader == windows.loader:
            if self._is_left_over(windows, run):
                windows.dropped += 1
                if windows.dropped >= _LEAST_EPOCHS:
                    self._report_drop(windows, site, run)
        self._open()

    def _is_left_over(self, windows: _Windows, run: Progress) -> bool:
        """Return True if the pending batches are the rest that windows of this size leave in an epoch, and many."""
        met = run.loaders.get(self._loader or 0)
        batches = met.batches if met is not None else None
        if not windows.regular or windows.size < 2 or not batches:
            return False
        return self._tail == (batches - windows.early) % windows.size and self._tail >= _LEAST_SHARE * batches

    def _report_drop(self, windows: _Windows, site: Site | None, run: Progress) -> None:
        tail, batches = self._tail, run.loaders[windows.loader].batches or 1
        cleared = () if site is None else (Mark(site, f"clears the gradients of the last {tail}"),)
        self._report(
            windows,
            windows.dropped,
            f"no step was made for the last {tail} of the {batches} batches of each epoch",
            related=(Mark(self._backward, "computed the gradients"), *cleared),
            cost=f"{tail / batches:.0%} of the backward passes made gradients that were cleared unused (counted)",
            run=run,
        )

    def _report_leak(self, windows: _Windows, run: Progress) -> None:
        tail, batches = self._tail, run.loaders[windows.loader].batches or 1
        whole = tail + windows.size
        self._report(
            windows,
            windows.leaked,
            f"the last {tail} of the {batches} batches of each epoch were used only in the next epoch's first step",
            related=(Mark(self._backward, "adds to the gradients of the previous epoch"),),
            cost=f"the first step of an epoch uses the gradients of {whole} batches for {windows.size} (counted)",
            run=run,
        )

    def _report(
        self, windows: _Windows, times: int, message: str, *, related: tuple[Mark, ...], cost: str, run: Progress
    ) -> None:
        key = self._latest
        assert key is not None
        new = key not in self._drafts
        draft = self.report(
            key[1],
            message,
            run=run,
            label=f"steps after every {windows.size} batches only",
            related=related,
            help=f"step at the end of `{run.loader_name(windows.loader)}` too, on the remaining batches",
            cost=cost,
            unit="epochs",
            key=key,
        )
        if new:
            draft.count = times
