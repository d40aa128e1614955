from __future__ import annotations

from truestep.events import Event, WeightsFollowed
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress


class WeightsAfterReduction(ReadingRule):
    """Weights of samples, or a mask, are multiplied with a loss that is already averaged: only their mean acts.

    What it does
    ------------
    Reads, at sampled steps, the tape of the loss. Reports a mean or a sum of losses that is multiplied with a tensor
    with one value for each loss, or for each sample, if these values are not all equal. Also reports a focal loss with
    a factor from the mean of the cross entropy, as in ``(1 - exp(-mean)) ** 2 * mean``.

    Why it matters
    --------------
    Every sample gets the same weight, which is the mean of all: rare classes count no more than frequent ones, padding
    and missing labels count as others do, and divided by its sum the mask cancels out. A focal loss turns into a cross
    entropy with another learning rate.

    Example
    -------
    ::

        loss = F.cross_entropy(scores, labels)              # one number
        loss = (loss * mask).sum() / mask.sum()             # the same number

    Fix
    ---
    Ask for one loss for each sample, multiply, then average::

        losses = F.cross_entropy(scores, labels, reduction="none")
        loss = (losses * mask).sum() / mask.sum()

    Known false alarms
    ------------------
    A policy gradient in which the mean of the log-probabilities of an episode is multiplied with each of its rewards
    on purpose. Not reported: fewer than four weights, weights with a gradient, a sum of losses that is not divided by
    the sum of the weights, weights that the mean is already made with, such as a mask of the positions that
    ``ignore_index`` keeps, means of other values than errors and cross entropies, focal factors of several images or
    tasks in one loss, and losses inside ``torch.compile`` and ``torch.func``.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://arxiv.org/abs/1708.02002
    """

    id = "weights-after-reduction"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (WeightsFollowed,)
    needs = (WeightsFollowed,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, WeightsFollowed) or not self.shown(event.site, run, right=not event.reduced):
            return
        name = f"`{event.name}`" if event.name else f"{event.count:,} weights"
        focal = event.reduced == "focal"
        self.report_line(
            event.site,
            event.made or event.site,
            "the factor of the focal loss is computed from the mean of the batch"
            if focal
            else f"{name} {'is' if event.name else 'are'} multiplied with a loss that is already averaged",
            run=run,
            label="the losses of a batch are reduced to one number",
            related=(Mark(event.site, "the backward pass through it"),) if event.made else (),
            cost="no sample counts more than another" if focal else "only the mean of the weights acts, on all samples",
            help='compute the loss with `reduction="none"`, and average after the multiplication',
            unit="backward passes read",
        )
