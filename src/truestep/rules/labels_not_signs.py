from __future__ import annotations

from truestep.events import Event, SignedLabelsRead, Site
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_LEAST_READS = 2
_NAMES = {
    "hinge": "a hinge loss",
    "logistic": "a logistic loss",
    "soft margin": "the soft margin loss",
    "cosine embedding": "the cosine embedding loss",
    "hinge embedding": "the hinge embedding loss",
}
_COSTS = {
    "cosine embedding": "a pair with a label of 0 adds nothing: only pairs that are alike are learned from",
    "hinge embedding": "a pair with a label of 0 is drawn together and pushed apart at once",
}
_COST = "a sample with a label of 0 adds a constant, and has no gradient: one of the two classes is never learned"


class LabelsNotSigns(Rule):
    """A loss that expects labels of -1 and 1 gets 0 and 1: samples with a 0 are not learned from.

    What it does
    ------------
    Reads, at the first sampled steps of each line with a backward pass, the labels on the tape of the loss: those of
    ``cosine_embedding_loss``, ``hinge_embedding_loss``, ``soft_margin_loss`` and ``margin_ranking_loss``, and those
    that multiply a score in a hinge by hand, ``relu(1 - y * score)``, or in a logistic loss by hand,
    ``softplus(-y * score)``. Reports labels of 0 and 1, at least 5 % of each, if seen at two steps or more and at no
    step with a label of -1.

    Why it matters
    --------------
    These losses multiply the score by the label, or choose a term by it, and torch gives no error for a 0. Its product
    is 0 for any score, so that half of the samples only add a constant; the loss falls with the other half. In the
    proof, pairs of different digits have no gradient: the nearest neighbour of a held-out digit is the same digit in
    71 % of the cases instead of 97 %.

    Example
    -------
    ::

        target = (first == second).float()              # 0 and 1
        loss = F.cosine_embedding_loss(a, b, target)

    Fix
    ---
    Convert the labels::

        target = 2 * (first == second).float() - 1      # -1 and 1

    Known false alarms
    ------------------
    A factor of 0 and 1 inside a hinge that leaves samples out on purpose, and adds the margin for each. Not reported:
    labels of three values (ties of a ranking), factors outside of the hinge, and hinges that are part of a model.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CosineEmbeddingLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MarginRankingLoss.html
    """

    id = "labels-not-signs"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (SignedLabelsRead,)
    needs = (SignedLabelsRead,)
    leads_to = ("loss-never-changes", "predictions-worse-than-chance")

    def __init__(self) -> None:
        super().__init__()
        self._reads: dict[Site | None, int] = {}
        """Line to its losses with labels of 0 and 1; -1 after others."""

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, SignedLabelsRead):
            return
        before = self._reads.get(event.site, 0)
        self._reads[event.site] = count = before + 1 if event.zeros and before >= 0 else -1
        if count < 0:
            self.withdraw(event.site)
        if count < _LEAST_READS:
            return
        draft = self.report(
            event.site,
            f"{_NAMES[event.kind]} got labels of 0 and 1: it expects -1 and 1",
            run=run,
            label=f"{event.zeros} % of its labels are 0, at a sampled step",
            cost=_COSTS.get(event.kind, _COST),
            help="convert the labels, `2 * y - 1`",
            unit="losses read",
        )
        draft.count = draft.total = count
