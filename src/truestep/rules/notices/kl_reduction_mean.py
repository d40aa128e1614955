from __future__ import annotations

from collections.abc import Iterator

from truestep.findings import Confidence, Severity
from truestep.rules._notice import Notice
from truestep.rules._syntax.models import losses
from truestep.syntax import Program, Suspicion


class KlReductionMean(Notice):
    """A KL divergence is averaged over the classes too, and is smaller than it should be by their number.

    What it does
    ------------
    Reports calls of ``F.kl_div`` and constructions of ``nn.KLDivLoss`` with the default reduction, and with low
    confidence those that ask for ``reduction="mean"``. Not reported: results that are multiplied by a size.

    Why it matters
    --------------
    The reduction ``"mean"`` divides the sum by the samples and by all other sizes: with 10 classes the loss and its
    gradient are 10 times smaller than the KL divergence, with 1000 classes 1000 times. Beside another loss, as in
    distillation, the term has hardly any weight. The documentation of torch asks for ``"batchmean"`` instead, and
    each call warns that a later version will change ``"mean"``.

    Example
    -------
    ::

        loss = F.cross_entropy(logits, y) + F.kl_div(logits.log_softmax(1), teacher_logits.softmax(1))

    Fix
    ---
    Divide by the number of samples only. The term becomes larger by the number of classes: choose its weight again::

        loss = F.cross_entropy(logits, y) + F.kl_div(
            logits.log_softmax(1), teacher_logits.softmax(1), reduction="batchmean"
        )

    With several positions in each sample, ``"batchmean"`` is a sum over positions: divide it by their number.

    Known false alarms
    ------------------
    The weight of the term was chosen for this reduction; or the input has one dimension, for which both are equal.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.KLDivLoss.html
    """

    id = "kl-reduction-mean"
    since = "0.1"
    severity = Severity.WARNING
    account = "loss"
    confidence = Confidence.MEDIUM

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return losses.kl_reduction_mean(program)
