from __future__ import annotations

from collections.abc import Iterator

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsZeroed,
    HandStepped,
    LossRead,
    OptimizerStepped,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.steps import missing
from truestep.syntax import Program, Suspicion

_LEAST_WINDOWS = 4
"""Sampled windows; two losses that differ have equal values, rounded to four digits, in one of thousands."""


class LossDifferentiatedTwice(Rule):
    """The same loss is differentiated twice for one step, so that its gradient counts twice.

    What it does
    ------------
    Finds two successive backward passes from one and the same loss, the second of which adds to all gradients that the
    first one made, with no clearing between the two, and a step that uses the sum. Also finds windows of several passes
    of one line that have an equal loss, at each sampled step, while the loss changes from step to step: their
    micro-batches are one batch.

    Why it matters
    --------------
    Each gradient is twice that of the loss: with SGD the learning rate is doubled, beside a penalty the loss weighs
    double, and a clip cuts more. Each step also takes the time of two backward passes. In the proof, a learning rate
    that is right for the loss does not train the net at all.

    Example
    -------
    ::

        loss.backward(retain_graph=True)
        log_gradient_norms(model)
        loss.backward()                     # adds the same gradients once more
        optimizer.step()

    Fix
    ---
    Differentiate each loss once per step::

        loss.backward()
        log_gradient_norms(model)
        optimizer.step()

    Known false alarms
    ------------------
    None known. Not reported: several losses, gradients that are cleared between the two passes, passes with
    different gradient arguments or for different parameters, windows of one batch with noise, such as dropout, and
    ``torch.autograd.grad``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    id = "loss-differentiated-twice"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (BackwardEnded, GradientsZeroed, LossRead, OptimizerStepped, HandStepped)
    needs = (BackwardEnded, OptimizerStepped)

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return missing.loss_differentiated_twice(program)

    def __init__(self) -> None:
        super().__init__()
        self._first: Site | None = None
        """Line of the latest backward pass."""
        self._twice: tuple[Site | None, Site | None] | None = None
        """Lines of two passes from one loss, with gradients that wait for a step."""
        self._steps: dict[Site | None, int] = {}
        """Line of the second pass to the first step with it."""
        self._losses: list[LossRead] = []
        """Losses of the window under way."""
        self._passes = 0
        self._adding = True
        """Whether each pass but the first adds to all gradients of the first."""
        self._windows: dict[Site | None, dict[float, int] | None] = {}
        """Line of the passes to losses that all passes of a window had, and their number; None after another window."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded():
                doubled = event.same_loss and event.written and event.onto_fresh == event.written
                if doubled and not event.in_step:
                    self._twice = self._first, event.site
                self._first = event.site
                adds = bool(event.written) and event.onto_fresh == event.written
                self._adding &= adds or not self._passes
                self._passes += 1
            case LossRead():
                self._losses.append(event)
            case GradientsZeroed(fresh=fresh) if fresh:
                self._twice = None
                self._begin()
            case OptimizerStepped() | HandStepped():
                if self._twice is not None:
                    self._found(*self._twice, run)
                self._twice = None
                self._close()

    def _begin(self) -> None:
        self._losses, self._passes, self._adding = [], 0, True

    def _close(self) -> None:
        """Compare the losses of a window, if all of them were read."""
        losses, passes, adding = self._losses, self._passes, self._adding
        self._begin()
        lines = {one.site for one in losses}
        if passes < 2 or len(losses) != passes:
            return
        values = {one.value for one in losses}
        if len(lines) > 1 or len(values) > 1 or not adding:
            self._windows |= dict.fromkeys(lines)
            return
        equal = self._windows.setdefault(next(iter(lines)), {})
        if equal is not None:
            equal[values.pop()] = passes

    def ended(self, event: RunEnded, run: Progress) -> None:
        for site, equal in self._windows.items():
            if equal is None or len(equal) < _LEAST_WINDOWS or site in self._steps:
                continue
            passes = max(equal.values())
            draft = self.report(
                site,
                f"all {passes} backward passes of a window have an equal loss: they differentiate one batch",
                run=run,
                label="the micro-batches are equal",
                help="read another batch for each backward pass",
                cost=f"{passes - 1} of {passes} passes add nothing new, and the batch of a step is one micro-batch",
                confidence=Confidence.MEDIUM,
                unit="windows read",
                key=("equal", site),
            )
            draft.count, draft.first_step = len(equal), 0

    def _found(self, first: Site | None, second: Site | None, run: Progress) -> None:
        """Report the second step with two passes at these lines, and count the later ones."""
        begun = self._steps.setdefault(second, run.step)
        if begun == run.step:
            return
        draft = self.report(
            second,
            "the same loss was differentiated twice for one step",
            run=run,
            label="adds gradients that are already there",
            related=(Mark(first, "the first backward pass from this loss"),) if first != second else (),
            help="call `backward()` once for each loss, and remove `retain_graph=True`",
        )
        if draft.count == 1:
            draft.count, draft.first_step = 2, begun
