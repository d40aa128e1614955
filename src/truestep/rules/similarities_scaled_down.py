from __future__ import annotations

from truestep.events import Event, SimilaritiesRead
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._readings import ReadingRule
from truestep.rules._rule import Progress

_FLAT = 0.9
"""Least share of the loss of guesses that no vectors can lower."""


class SimilaritiesScaledDown(ReadingRule):
    """Similarities of unit vectors are made smaller before a softmax: the loss cannot leave that of guesses.

    What it does
    ------------
    Reads, at sampled steps, the tape of losses with a softmax of products of unit vectors. Reports a softmax if the
    lowest loss that vectors can have at all, with every similarity at 1 or -1, is at least 0.9 of the loss of guesses.

    Why it matters
    --------------
    A temperature divides: at 0.1, similarities between -1 and 1 become logits between -10 and 10. Multiplied with 0.1
    they lie between -0.1 and 0.1, and the probabilities of a softmax over 256 pairs between 0.0035 and 0.0043. The
    gradient is small and nearly the same for all negatives, so that hard ones count no more than easy ones.

    Example
    -------
    ::

        a, b = F.normalize(a, dim=1), F.normalize(b, dim=1)
        logits = a @ b.T * 0.1
        loss = F.cross_entropy(logits, torch.arange(len(a)))

    Fix
    ---
    Divide by the temperature::

        logits = a @ b.T / 0.1

    Known false alarms
    ------------------
    A factor that is this small on purpose. Not reported: temperatures above 1 that divide, factors that are trained or
    that change to larger ones, soft targets such as those of a teacher, similarities that other scores are added to,
    softmaxes over fewer than eight similarities, and losses inside ``torch.compile`` and ``torch.func``.

    References
    ----------
    - https://arxiv.org/abs/2002.05709
    - https://arxiv.org/abs/2012.09740
    """

    id = "similarities-scaled-down"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    explains = ("loss-at-chance",)
    watches = (SimilaritiesRead,)
    needs = (SimilaritiesRead,)

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, SimilaritiesRead):
            return
        if not self.shown(event.site, run, right=event.least < _FLAT):
            return
        self.report_line(
            event.site,
            event.made or event.site,
            "the similarities of unit vectors are scaled down before the softmax, and the loss stays near that of "
            "guesses",
            run=run,
            label=f"logits lie between {-event.factor:.2g} and {event.factor:.2g}",
            related=(Mark(event.site, "the backward pass of the loss"),) if event.made else (),
            cost=f"no vectors can lower the loss below {event.least:.0%} of that of guesses among {event.classes:,}",
            help="divide the similarities by the temperature",
            unit="backward passes read",
        )
