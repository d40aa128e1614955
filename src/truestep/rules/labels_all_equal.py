from __future__ import annotations

from dataclasses import dataclass

from truestep.events import Event, LabelsCounted, RunEnded, Site
from truestep.findings import Confidence, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST_LABELS = 2000
_LEAST_STEPS = 20


@dataclass(slots=True)
class _Labels:
    """The labels of the losses of one kind with so many classes."""

    site: Site | None
    only: float | None
    """None if two differ."""
    rows: int = 0
    reads: int = 0
    weights: set[int | None] | None = None


class LabelsAllEqual(Rule):
    """All labels that a classifier is trained on are the same: another column, or zeros in place of the labels.

    What it does
    ------------
    Reads the labels of cross entropy and binary cross entropy in the first calls of each line and at sampled steps. At
    the end, reports labels that were all equal, at least 2,000 samples of them, if no other loss with as many
    classes had another label, and if the input of the loss comes directly from a trained layer with a row of weights
    for each class.

    Why it matters
    --------------
    The loss falls to zero within a few steps, the accuracy on the same labels is 100 %, and the model has learned one
    constant. In the proof, 0.19 of the samples are right instead of 0.99.

    Example
    -------
    ::

        labels = torch.zeros_like(batch["label"])       # left over from a test
        loss = F.cross_entropy(model(batch["x"]), labels)

    Fix
    ---
    Give the loss the labels of the samples::

        loss = F.cross_entropy(model(batch["x"]), batch["label"])

    Known false alarms
    ------------------
    A run over the samples of one class only. Not reported: adversarial losses (a discriminator also gets the other
    label), contrastive losses with the positive pair at one place (similarities have no weights for classes),
    differences of scores, inputs that are optimised for one class, soft labels, labels with weights of samples, and
    less than 2,000 samples, since the other class may be rare.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "labels-all-equal"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    confidence = Confidence.MEDIUM
    watches = (LabelsCounted,)
    needs = (LabelsCounted, steps(_LEAST_STEPS), FINISHED)

    def __init__(self) -> None:
        super().__init__()
        self._labels: dict[tuple[bool, int], _Labels] = {}

    def observe(self, event: Event, run: Progress) -> None:
        """Collect the labels: the others may come later in the run."""
        self._add(event, 1)

    def again(self, event: Event, times: int) -> None:
        self._add(event, times)

    def _add(self, event: Event, times: int) -> None:
        if not isinstance(event, LabelsCounted):
            return
        key = event.kind.startswith("binary"), event.classes
        known = self._labels.setdefault(key, _Labels(event.site, event.only))
        if known.only is not None and event.only == known.only:
            known.rows += times * event.rows
            known.reads += times
            known.weights = (known.weights or set()) | {event.weight}
        else:
            known.only = None

    def suspected(self) -> bool:
        return super().suspected() or any(known.only is not None for known in self._labels.values())

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how != "finished" or run.step < _LEAST_STEPS:
            return
        for (binary, classes), known in self._labels.items():
            layers = known.weights or {None}
            trained = all(layer in run.weights.moved and run.held_by.get(layer or 0) for layer in layers)
            if known.only is None or known.rows < _LEAST_LABELS or not trained:
                continue
            what = "binary cross entropy" if binary else f"cross entropy of {classes} classes"
            draft = self.report(
                known.site,
                f"{what} got no other label than {known.only:g}",
                run=run,
                label=f"labels of {known.rows:,} samples are {known.only:g}",
                cost="a model that returns one constant has the least loss",
                help="give the loss the labels of the samples",
                unit="losses read",
            )
            draft.count = draft.total = known.reads
            draft.first_step = None
