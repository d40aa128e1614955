from __future__ import annotations

from truestep.events import Event, ProbabilitiesRead, Site
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_LEAST_SHARE = 1
_LEAST_SHARE_OF_CLASSES = 10
"""Least percentage of labels outside of 0 to 1, of binary cross entropy and of cross entropy."""
_BYTE = 255.0
_COST = "with such labels this loss has no lower bound: it falls as long as the outputs grow"
_COST_OF_LOGARITHMS = "the powers of probabilities lie between 1 and 2.7, so that all classes have nearly equal targets"
_NAMES = {
    "binary_cross_entropy_with_logits": "binary cross entropy with logits",
    "cross_entropy": "cross entropy",
    "kl_div": "KL divergence",
}
_CLASSES_HELP = "apply `softmax` to the labels, or give class indices"


class LabelsNotProbabilities(Rule):
    """A loss that expects probabilities as labels gets other numbers and has no lower bound.

    What it does
    ------------
    Reads the targets of three losses at sampled steps. Reports, if seen at two steps or more:

    - targets of ``binary_cross_entropy_with_logits`` that are not all equal, some at most -0.5 or at least 1.5;
    - class probabilities for ``cross_entropy``, most of them not zero and at least 10 % of them at most -0.5;
    - the same for ``kl_div``, and with ``log_target=True`` targets that are all from 0 to 1.

    If the labels come from a model and the input does not, the help says that the two are swapped.

    Why it matters
    --------------
    With labels outside of 0 to 1 the loss falls without bound along one direction: the model learns to make its outputs
    large, and torch gives no error (``BCELoss`` does). With masks of 0 and 255 the overlap was 0.19, the share of the
    foreground, instead of 0.87: everything was classified as foreground. With labels of -1 and 1, 85 % instead of 93 %
    were right with Adam, 76 % with SGD, and the overlap on masks was 0.00. With a teacher's logits as labels of
    ``cross_entropy``, 10 % of samples in ten classes were right instead of 98 %. With a teacher's probabilities as
    logarithms of ``kl_div``, the student's probabilities were 0.57 away from them instead of 0.04.

    Example
    -------
    ::

        mask = torch.from_numpy(np.array(image)).float()            # 0 and 255
        loss = F.binary_cross_entropy_with_logits(model(x), mask)

    Fix
    ---
    Convert the labels to probabilities::

        loss = F.binary_cross_entropy_with_logits(model(x), (mask > 0).float())
        loss = F.cross_entropy(student, teacher.softmax(1))

    Known false alarms
    ------------------
    None known. Not reported: smoothed labels, including 1.2 or -0.1, mixed labels, one-hot labels times a factor (the
    loss keeps its lower bound), rewards times one-hot actions, labels that are ignored by a ``weight`` or after
    ``reduction="none"``, and batches of identical labels (a task without labels for them).

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "labels-not-probabilities"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (ProbabilitiesRead,)
    needs = (ProbabilitiesRead,)
    leads_to = ("nan-or-inf", "softmax-before-cross-entropy")

    def __init__(self) -> None:
        super().__init__()
        self._range: dict[tuple[Site | None, str], tuple[float, float]] = {}
        """Lowest and highest label of a loss."""

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, ProbabilitiesRead) or not event.lowest < event.highest:
            return
        binary = event.kind == "binary_cross_entropy_with_logits"
        if event.outside < (_LEAST_SHARE if binary else _LEAST_SHARE_OF_CLASSES) or not (binary or event.dense):
            return
        if event.logarithms and not 0 <= event.lowest < event.highest <= 1:
            return
        key = (event.site, event.kind)
        low, high = self._range.get(key, (event.lowest, event.highest))
        self._range[key] = low, high = min(low, event.lowest), max(high, event.highest)
        if not self.seen_before(key, run):
            return
        wanted = "logarithms of probabilities" if event.logarithms else "probabilities"
        self.report(
            event.site,
            f"{_NAMES[event.kind]} got labels that are not {wanted}",
            run=run,
            label=f"labels from {low:g} to {high:g}, at sampled steps",
            help=_swapped_help(event) or (_help(low, high) if binary else _help_for_classes(event, high)),
            cost=_COST_OF_LOGARITHMS if event.logarithms else _COST,
            unit="sampled losses",
            key=key,
        )


def _help_for_classes(event: ProbabilitiesRead, high: float) -> str:
    if event.kind != "kl_div":
        return _CLASSES_HELP
    if event.logarithms:
        return "leave out `log_target=True`, or give `log_softmax` of the targets"
    return "set `log_target=True`" if high <= 0 else "apply `softmax` to the targets"


def _swapped_help(event: ProbabilitiesRead) -> str:
    return "swap the arguments: the loss takes the output of the model first, then the labels" if event.swapped else ""


def _help(low: float, high: float) -> str:
    """Return the help for converting such labels to probabilities.

    >>> _help(-1.0, 1.0)
    'turn labels of -1 and 1 into 0 and 1 with `(target + 1) / 2`'
    """
    if (low, high) == (-1.0, 1.0):
        return "turn labels of -1 and 1 into 0 and 1 with `(target + 1) / 2`"
    if (low, high) == (0.0, _BYTE):
        return "turn a mask of 0 and 255 into 0 and 1 with `(target > 0).float()`"
    return "give labels between 0 and 1, and leave out entries without a label by `weight` or a mask"
