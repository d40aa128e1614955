"""Evidence from copies of the arguments: both passes of a custom function in double precision."""

from __future__ import annotations

from truestep.events import CheckSkipped, DerivativeCompared, Event
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule


class CustomBackwardWrong(Rule):
    """The backward pass of a custom `autograd.Function` is not the derivative of its forward pass.

    What it does
    ------------
    Calls each custom function that the loss goes through on copies of its arguments in double precision. Compares the
    gradient with the slope of the forward pass along five random directions, by central differences. Reports a
    function if they differ by more than 5 % along most of them.

    Why it matters
    --------------
    Autograd does not check a backward pass that is written by hand. With a wrong factor or a missing term the loss
    still falls, more slowly and to a worse value, since each layer below gets a wrong direction. In the proof the
    error of a regression is 0.35 instead of 0.006.

    Example
    -------
    ::

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.sin(3 * x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * torch.sin(3 * x)      # the derivative is 3 * cos(3 * x)

    Fix
    ---
    Derive the gradient again, and compare it in a test::

        torch.autograd.gradcheck(Function.apply, (x.double().requires_grad_(),))

    Known false alarms
    ------------------
    A gradient that is changed on purpose inside a curved function. Not reported: straight-through estimators, surrogate
    gradients of steps, reversed and scaled gradients, clamps that pass gradients on (their forward pass is straight or
    not smooth), and arguments without a gradient.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/extending.html
    - https://docs.pytorch.org/docs/stable/generated/torch.autograd.gradcheck.gradcheck.html
    """

    id = "custom-backward-wrong"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "gradients"
    watches = (DerivativeCompared, CheckSkipped)
    needs = (DerivativeCompared,)
    asks = "custom gradients are right"

    def __init__(self) -> None:
        super().__init__()
        self._skipped = ""

    def unobserved(self, run: Progress) -> str:
        return self._skipped if DerivativeCompared not in run.met and self._skipped else super().unobserved(run)

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case CheckSkipped(check="derivatives"):
                self._skipped = event.reason
            case DerivativeCompared(wrong=True):
                self.report(
                    event.site,
                    f"the backward pass of `{event.function}` is not the derivative of its forward pass",
                    run=run,
                    label=f"`{event.function}` gets a wrong gradient",
                    cost=f"along a random direction it gave {event.ratio:g} times the slope of the forward pass, "
                    "in double precision",
                    help=f"correct `{event.function}.backward`, and test it with `torch.autograd.gradcheck`",
                    unit="checks",
                )
