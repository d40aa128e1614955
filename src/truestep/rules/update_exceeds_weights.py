from __future__ import annotations

from dataclasses import dataclass, field

from truestep.events import Event, LossRead, RunEnded, Site, UpdateMeasured
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LARGE = 3.0
"""A first update of this size, relative to the weights, leaves little of their initial values."""
_STILL_LARGE = 0.5
"""Size of the three updates after it, if the first one was not measured: the weights have its size by now."""
_JUMP = 5.0
_LEAST_VALUES = 16
"""Fewer values can all be near zero by chance."""
_LEAST_LATER, _FAR, _FAR_OF_ERRORS = 4, 25.0, 1000.0
"""Values of the loss after such updates, and how far they are above the first; an error of an easy batch can be 0."""
_OF_CLASSES = ("NllLoss", "BinaryCrossEntropy")


@dataclass(slots=True)
class _Erased:
    """An optimizer with an early update that was far larger than its weights."""

    ratio: float
    step: Site | None
    line: Site | None
    """Line of the loss that was read before the update."""
    before: float
    far: float
    """How far later values must be above it, as a factor, if the first update was not measured."""
    updates: int
    """Updates before it."""
    worst: float = 0.0
    """Largest absolute value of this loss since then."""
    reads: int = 0
    """Values of it since then."""
    later: list[float] = field(default_factory=list)
    """Least and last value of it since then."""


class UpdateExceedsWeights(Rule):
    """The first updates are several times larger than the weights and do not lower the loss.

    What it does
    ------------
    Measures, at sampled steps, how far a step moves the weights of an optimizer, relative to their size: the median of
    its weights, by any optimizer. Reports a first update of more than three times the weights, if the loss then
    jumped to five times its value or was never lower again. If the first update was not measured, the next three show
    it: they are of about the size of the weights, and at least four later values of the loss are 25 times as large as
    its first, 1,000 times for errors. Models without a weight of 16 values are not judged.

    Why it matters
    --------------
    Initial values are chosen so that activations and gradients keep their size from layer to layer. A step that is
    larger than the weights replaces them by the direction of one gradient: units die or saturate, and the loss returns
    to that of a guess, if at all. In the proof, an Adam with a learning rate of 5 in place of 0.005 has 41 % of
    held-out points right instead of 84 %.

    Example
    -------
    ::

        optimizer = torch.optim.Adam(model.parameters(), lr=5)      # each weight, about 0.1, moves by 5

    Fix
    ---
    Divide the learning rate by 100 or more; steps of a thousandth to a hundredth of the weights are usual::

        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    Known false alarms
    ------------------
    None known. Not reported: weights that begin near zero (adapters, tables of features), and large updates after which
    the loss falls.

    References
    ----------
    - https://arxiv.org/abs/1708.03888
    - https://docs.pytorch.org/docs/stable/optim.html
    """

    id = "update-exceeds-weights"
    since = "0.1"
    severity = Severity.ERROR
    account = "rate"
    watches = (LossRead, UpdateMeasured)
    needs = (LossRead, UpdateMeasured)
    explains = ("loss-at-chance",)
    leads_to = ("loss-never-changes", "nan-or-inf")

    def __init__(self) -> None:
        super().__init__()
        self._erased: dict[int, _Erased] = {}
        self._latest: LossRead | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossRead():
                self._latest = event
                for one in self._erased.values():
                    if one.line == event.site:
                        one.reads += 1
                        one.worst = max(one.worst, abs(event.value))
                        one.later = [min([event.value, *one.later[:1]]), event.value]
            case UpdateMeasured() if event.optimizer not in self._erased and self._latest is not None:
                self._measured(event, self._latest, run)

    def _measured(self, event: UpdateMeasured, latest: LossRead, run: Progress) -> None:
        updates = run.rates.updates(event.optimizer)
        if event.values >= _LEAST_VALUES and event.ratio >= (_STILL_LARGE if updates else _LARGE):
            before = run.losses.lines[latest.site].first if updates else latest.value
            far = _FAR if latest.function.startswith(_OF_CLASSES) else _FAR_OF_ERRORS
            self._erased[event.optimizer] = _Erased(event.ratio, event.site, latest.site, before, far, updates)

    def ended(self, event: RunEnded, run: Progress) -> None:
        for number, one in self._erased.items():
            jumped, never_lower = one.worst >= _JUMP * abs(one.before), one.later[:1] >= [one.before]
            if one.updates:
                far = one.reads >= _LEAST_LATER and one.later[0] >= one.far * abs(one.before)
            else:
                far = bool(one.later) and (jumped or never_lower)
            if far:
                self._found(number, one, run)

    def _found(self, number: int, one: _Erased, run: Progress) -> None:
        built = run.optimizers.get(number)
        site = built.site if built is not None and built.site is not None else one.step
        draft = self.report(
            site,
            f"an early update of `{run.optimizer_name(number)}` was {one.ratio:,.2g} times as large as the weights",
            run=run,
            label="built here" if site != one.step else "makes the step",
            related=(Mark(one.step, "makes the step"),) if site != one.step else (),
            help="divide the learning rate by 100 or more",
            confidence=Confidence.HIGH if one.later[-1] >= one.before else Confidence.MEDIUM,
            key=number,
        )
        draft.first_step, draft.count, draft.total = one.updates, 1, run.rates.updates(number)
        draft.cost = (
            f"the loss was {one.before:.3g} before it, {one.later[-1]:.3g} at last, and at most {one.worst:.3g}"
        )
