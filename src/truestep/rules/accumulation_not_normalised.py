from __future__ import annotations

from collections.abc import Iterator

from truestep import events as ev
from truestep.events import Event, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._clipping import is_limit
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import scaled
from truestep.syntax import Program, Suspicion

_LEAST_WINDOWS = 2
_MEANS = ("NllLoss", "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "Mean")
"""Operations of losses that are means over a batch."""
_ALIGNED = 0.85
"""Ratio, relative to the number of passes, that gradients of one task reach early; those of several tasks do not."""
_LEAST_ALIGNED = 2
_SUMMED = 1.5
"""From this ratio on, the gradient stepped on is a sum; the mean of several has at most their average norm."""


class AccumulationNotNormalised(Rule):
    """Gradients of several batches are summed for one step and never divided by their number.

    What it does
    ------------
    Finds accumulation windows: several backward passes from the same line, over batches of one loader, before one step.
    Reports a window if its losses are not divided and the sum is not scaled before the step. At sampled steps, the rule
    compares the norm of the gradient with the mean norm of one backward's contribution. With Adam and similar
    optimizers it reports only if gradients are also clipped. Without a DataLoader the gradients decide: the norm of
    their sum must be nearly the sum of their norms, as of several batches for one task.

    Why it matters
    --------------
    The gradient is up to N times larger for a window of N batches, as if the learning rate were N times larger. A
    change of the window size then changes the training, and clipping takes effect at up to N times smaller gradients.

    Example
    -------
    ::

        for number, (x, y) in enumerate(loader, start=1):
            loss = criterion(model(x), y)
            loss.backward()
            if number % 8 == 0:
                optimizer.step()        # on the sum of eight gradients
                optimizer.zero_grad()

    Fix
    ---
    Divide each loss by the number of batches in its window::

        loss = criterion(model(x), y) / 8
        loss.backward()

    Known false alarms
    ------------------
    A learning rate that was lowered by hand to compensate for the sum. Not reported: several losses of one batch,
    losses with ``reduction="sum"``, and gradients that are divided after the last backward pass.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation
    """

    id = "accumulation-not-normalised"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (
        ev.BackwardEnded,
        ev.BatchDrawn,
        ev.GradientsClipped,
        ev.HandStepped,
        ev.LossComputed,
        ev.OptimizerStepped,
        ev.WindowMeasured,
    )
    needs = (ev.BackwardEnded,)
    leads_to = ("nan-or-inf", "update-exceeds-weights")

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return scaled.accumulation_not_normalised(program)

    def __init__(self) -> None:
        super().__init__()
        self._open()
        self._windows: dict[tuple[int, Site | None], tuple[int, int]] = {}
        """Optimizer and backward to the number of such windows, and the step of the first."""
        self._ratios: dict[int, tuple[float, int, int]] = {}
        """Optimizer to the latest ratio measured in such a window, the window's number of backwards, and the step."""
        self._measured: dict[int, tuple[float, int]] = {}
        """Optimizer to the sum of all ratios and their number. Single ones fall once the gradients are noise."""
        self._aligned: dict[tuple[int, Site | None], int] = {}
        """Optimizer and backward without a loader to the number of windows with gradients in one direction."""
        self._accumulates = self._judged = False

    def unobserved(self, run: Progress) -> str:
        if not self._accumulates:
            return super().unobserved(run) or ev.WindowMeasured.absent
        return super().unobserved(run) or ("" if self._judged else "no accumulation over batches of a DataLoader")

    def _open(self) -> None:
        self._backwards: dict[Site | None, int] = {}
        self._healthy: set[Site | None] = set()
        """Backwards with a divided loss, or not exactly one per batch."""
        self._bare: set[Site | None] = set()
        """Backwards of a mean over a batch that is not from a loader."""
        self._drawn: set[int] = set()
        self._clipped = self._summed = False

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case ev.BatchDrawn():
                self._drawn.add(event.loader)
            case ev.LossComputed(reduction="sum", grad=True):
                self._summed = True
            case ev.BackwardEnded(in_step=False) if event.written:
                self._backward(event)
            case ev.GradientsClipped() if event.fresh and is_limit(event):
                self._clipped = True
            case ev.WindowMeasured():
                self._ratios[event.optimizer] = (event.ratio, event.backwards, run.step)
                total, number = self._measured.get(event.optimizer, (0.0, 0))
                self._measured[event.optimizer] = total + event.ratio, number + 1
            case ev.OptimizerStepped():
                self._step(event, run)
                self._open()
            case ev.HandStepped():
                self._open()

    def _backward(self, event: ev.BackwardEnded) -> None:
        site = event.site
        seen = self._backwards.get(site, 0)
        self._backwards[site] = seen + 1
        self._accumulates |= seen > 0 and event.onto_fresh > 0
        alone = event.loader is None or event.loader not in self._drawn or (seen > 0 and not event.onto_fresh)
        self._judged |= seen > 0 and event.onto_fresh > 0 and (event.divided or not alone)
        if event.loader is None and event.root.startswith(_MEANS) and not event.divided:
            self._bare.add(site)
        elif event.divided or alone or event.root.startswith("SumBackward"):
            self._healthy.add(site)
        self._drawn.clear()

    def _is_aligned(self, key: tuple[int, Site | None], share: float) -> bool:
        """Return True if the gradients of enough windows had one direction."""
        self._aligned[key] = self._aligned.get(key, 0) + (share >= _ALIGNED)
        return self._aligned[key] >= _LEAST_ALIGNED and len(self._backwards) == 1

    def _mean_ratio(self, optimizer: int) -> float:
        total, number = self._measured.get(optimizer, (0.0, 1))
        return total / number

    def _step(self, event: ev.OptimizerStepped, run: Progress) -> None:
        built = run.optimizers.get(event.optimizer)
        indifferent = built is None or built.scale_free
        if (indifferent and not self._clipped) or self._summed or not event.fresh or event.closure:
            return
        ratio, backwards, at = self._ratios.get(event.optimizer, (0.0, 0, 0))
        for site, count in self._backwards.items():
            key = (event.optimizer, site)
            if count < 2:
                continue
            if site in self._healthy:
                self.withdraw(key)
                self._windows.pop(key, None)
                continue
            share = ratio / backwards if backwards and at == run.step else 0.0
            if site in self._bare and not self._is_aligned(key, share):
                continue
            past, first = self._windows.get(key, (0, run.step))
            self._windows[key] = (windows, first) = (past + 1, first)
            if 0 < self._mean_ratio(event.optimizer) < _SUMMED:
                self.withdraw(key)
            elif windows >= _LEAST_WINDOWS:
                new = key not in self._drafts
                draft = self.report(
                    site,
                    "gradients of several batches were summed for one step and never divided by their number",
                    run=run,
                    label=f"{count} backward passes per step, the loss is not divided",
                    related=(Mark(event.site, f"{run.optimizer_name(event.optimizer)} steps on the sum"),),
                    help=f"divide the loss by the {count} batches of a window before `backward()`",
                    confidence=Confidence.MEDIUM,
                    key=key,
                )
                if new:
                    draft.count, draft.first_step = windows, first
                if ratio:
                    draft.confidence = Confidence.HIGH
                    draft.cost = (
                        f"the gradient stepped on is {ratio:.1f}x that of one backward pass, in a window of {backwards}"
                        f" (norms measured at step {at})"
                    )
