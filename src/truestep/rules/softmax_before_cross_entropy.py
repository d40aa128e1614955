from __future__ import annotations

import math
from collections.abc import Iterator

from truestep.events import Event, LossComputed
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import loss_of
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.models import losses
from truestep.syntax import Program, Suspicion


class SoftmaxBeforeCrossEntropy(Rule):
    """Cross entropy gets probabilities where it expects logits.

    What it does
    ------------
    Finds training losses of ``cross_entropy`` with an input from a softmax over the classes, or with input rows that
    are non-negative and sum to one.

    Why it matters
    --------------
    ``cross_entropy`` applies log-softmax itself. On probabilities its own softmax is almost flat: even a perfect answer
    among C classes costs log(1 + (C - 1) / e), and gradients vanish as the first softmax saturates. Training is slow
    and stops improving early, with a loss that cannot come near zero.

    Example
    -------
    ::

        probabilities = torch.softmax(model(x), dim=1)
        loss = F.cross_entropy(probabilities, y)        # softmax of a softmax

    Fix
    ---
    Pass the logits to the loss, and use the softmax only for predictions::

        loss = F.cross_entropy(model(x), y)

    Known false alarms
    ------------------
    None known. Not reported: ``log_softmax`` before cross entropy, which changes nothing (it is idempotent), the
    logarithm of probabilities, a softmax over another dimension, and losses that do not track gradients.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "softmax-before-cross-entropy"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    explains = ("loss-at-chance",)
    watches = (LossComputed,)
    needs = (LossComputed, loss_of("cross_entropy"))

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return losses.softmax_before_cross_entropy(program)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, LossComputed) or event.kind != "cross_entropy" or not event.grad or event.classes == 1:
            return
        over_classes = event.softmax_dim == (-1 if event.input_rank < 2 else 1 - event.input_rank)
        softmax = event.input_from == "SoftmaxBackward0" and over_classes
        if not (softmax or event.sums_to_one) or not self.seen_before(event.site, run):
            return
        known = event.reduction == "mean" and event.classes > 1
        least = math.log1p((event.classes - 1) / math.e) if known else 0.0
        self.report(
            event.site,
            "cross entropy got probabilities where it expects logits",
            run=run,
            label="its input comes from a softmax" if softmax else "the rows of its input sum to one",
            cost=f"with {event.classes} classes the loss cannot fall below {least:.2f}" if known else "",
            help="pass the output of the last linear layer to the loss, and remove the softmax before it",
            confidence=Confidence.HIGH if softmax else Confidence.MEDIUM,
            unit="losses",
        )
