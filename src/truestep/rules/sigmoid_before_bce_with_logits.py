from __future__ import annotations

from collections.abc import Iterator

from truestep.events import Event, LossComputed, SquashedTwice
from truestep.findings import Severity
from truestep.rules._conditions import loss_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import losses
from truestep.syntax import Program, Suspicion

_FORMS = {
    "logsigmoid": "`logsigmoid`",
    "log of 1 + exp": "log(1 + exp(-abs(x))) of the stable cross entropy",
}
_MAKERS = {"SigmoidBackward0": "sigmoid", "SoftmaxBackward0": "softmax"}


class SigmoidBeforeBceWithLogits(Rule):
    """Binary cross entropy with logits gets probabilities where it expects logits.

    What it does
    ------------
    Finds training losses of ``binary_cross_entropy_with_logits`` with an input from a sigmoid or a softmax, even if it
    was reshaped or indexed in between. The same loss written by hand is found on the autograd tape: a term of the loss
    is ``logsigmoid(p)``, or has the ``log1p(exp(-abs(p)))`` of the stable form, of the result of a sigmoid.

    Why it matters
    --------------
    The loss applies a sigmoid itself. It turns a number between 0 and 1 into a probability between 0.5 and 0.73, so
    even a perfect answer costs 0.31 for a positive and 0.69 for a negative label. The lowest loss requires outputs of
    exactly 0 and 1, which do not express the confidence of the model, and the first sigmoid saturates on the way.

    Example
    -------
    ::

        probability = torch.sigmoid(model(x))
        loss = F.binary_cross_entropy_with_logits(probability, y)       # sigmoid of a sigmoid

    Fix
    ---
    Pass the logits to the loss, and use the sigmoid only for predictions::

        loss = F.binary_cross_entropy_with_logits(model(x), y)

    Known false alarms
    ------------------
    None known. Not reported: probabilities as *targets* (distillation) and a sigmoid that is scaled or shifted before
    the loss (a gate, a temperature), which are both correct, and losses that do not track gradients. In losses written
    by hand, differences of two probabilities are not reported, nor other logarithms, such as a softplus of gates.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    """

    id = "sigmoid-before-bce-with-logits"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (LossComputed, SquashedTwice)
    needs = (LossComputed, loss_of("binary_cross_entropy_with_logits"))

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return losses.sigmoid_before_bce_with_logits(program)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, SquashedTwice):
            self._by_hand(event, run)
            return
        if not isinstance(event, LossComputed) or event.kind != "binary_cross_entropy_with_logits" or not event.grad:
            return
        maker = _MAKERS.get(event.made_by)
        if maker is None or not self.seen_before(event.site, run):
            return
        self.report(
            event.site,
            "binary cross entropy with logits got probabilities where it expects logits",
            run=run,
            label=f"its input comes from a {maker}",
            cost="before weights, a label of 0 costs at least 0.69",
            help=f"remove the {maker} before the loss, or use `binary_cross_entropy` with it",
            unit="losses",
        )

    def _by_hand(self, event: SquashedTwice, run: Progress) -> None:
        """Report a loss by hand; the line is that of the backward pass."""
        self.report(
            event.site,
            "the loss applies a sigmoid to probabilities",
            run=run,
            label=f"{_FORMS[event.form]} gets the result of a sigmoid",
            cost="a probability between 0.5 and 0.73 is the result: even a perfect answer costs 0.31",
            help="remove the sigmoid before the loss, or use `log` of its result",
            unit="losses",
        )
