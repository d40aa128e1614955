from __future__ import annotations

from truestep.events import BackwardEnded, Event, GradientsZeroed, HandStepped, OptimizerStepped, Site
from truestep.findings import Mark, Severity
from truestep.rules._rule import Progress, Rule


class LossDifferentiatedTwice(Rule):
    """The same loss is differentiated twice for one step, so that its gradient counts twice.

    What it does
    ------------
    Finds two successive backward passes from one and the same loss, the second of which adds to all gradients that the
    first one made, with no clearing between the two, and a step that uses the sum.

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
    different gradient arguments or for different parameters, and ``torch.autograd.grad``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html
    """

    id = "loss-differentiated-twice"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (BackwardEnded, GradientsZeroed, OptimizerStepped, HandStepped)
    needs = (BackwardEnded, OptimizerStepped)

    def __init__(self) -> None:
        super().__init__()
        self._first: Site | None = None
        """Line of the latest backward pass."""
        self._twice: tuple[Site | None, Site | None] | None = None
        """Lines of two passes from one loss, with gradients that wait for a step."""
        self._steps: dict[Site | None, int] = {}
        """Line of the second pass to the first step with it."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded():
                doubled = event.same_loss and event.written and event.onto_fresh == event.written
                if doubled and not event.in_step:
                    self._twice = self._first, event.site
                self._first = event.site
            case GradientsZeroed(fresh=fresh) if fresh:
                self._twice = None
            case OptimizerStepped() | HandStepped():
                if self._twice is not None:
                    self._found(*self._twice, run)
                self._twice = None

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
