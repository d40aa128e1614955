from __future__ import annotations

from truestep.events import Event, ProbabilitiesRead, Site
from truestep.findings import Severity
from truestep.rules._rule import Progress, Rule

_LEAST_SHARE = 1
_LEAST_SHARE_OF_CLASSES = 10
_BYTE = 255.0
_CLASSES_HELP = "apply `softmax` to the labels, or give class indices"


class LabelsNotProbabilities(Rule):
    """A loss that expects probabilities as labels gets other numbers, and has no lower end.

    What it does
    ------------
    Reads, at sampled steps, the targets of ``binary_cross_entropy_with_logits`` and the class probabilities given to
    ``cross_entropy``. Reports the first where some lie at -0.5 or below, or at 1.5 or above, and not all are the same,
    and the second where most are not zero and at least 10 % lie at -0.5 or below; both at two steps or more. Where the
    labels come from a model and the input does not, it says that the two are swapped.

    Why it matters
    --------------
    Outside of 0 to 1 the loss falls for ever along one direction: the model learns to make its outputs large, and torch
    says nothing (``BCELoss`` does raise). Masks of 0 and 255 left an overlap of 0.19 instead of 0.87, the share of the
    foreground: everything became foreground. Labels of -1 and 1 gave 85 % instead of 93 % right with Adam, 76 % with
    SGD, and an overlap of 0.00 on masks. Logits of a teacher as labels of ``cross_entropy`` left 10 % right of ten
    classes instead of 98 %.

    Example
    -------
    ::

        mask = torch.from_numpy(np.array(image)).float()            # 0 and 255
        loss = F.binary_cross_entropy_with_logits(model(x), mask)

    Fix
    ---
    Turn labels into probabilities::

        loss = F.binary_cross_entropy_with_logits(model(x), (mask > 0).float())
        loss = F.cross_entropy(student, teacher.softmax(1))

    Known false alarms
    ------------------
    None known. Quiet: smoothed labels, also those of 1.2 or -0.1, mixed labels, one-hot labels with a factor (the loss
    keeps its lower end), rewards times one-hot actions, labels that are ignored by a ``weight`` or after
    ``reduction="none"``, and batches whose labels are all the same number (a task without labels there).

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.BCEWithLogitsLoss.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "labels-not-probabilities"
    since = "0.1"
    severity = Severity.ERROR
    watches = (ProbabilitiesRead,)
    needs = (ProbabilitiesRead,)
    leads_to = ("nan-or-inf", "softmax-before-cross-entropy")

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[tuple[Site | None, str], tuple[int, float, float]] = {}

    def observe(self, event: Event, run: Progress) -> None:
        if not isinstance(event, ProbabilitiesRead) or not event.lowest < event.highest:
            return
        binary = event.kind == "binary_cross_entropy_with_logits"
        if event.outside < (_LEAST_SHARE if binary else _LEAST_SHARE_OF_CLASSES) or not (binary or event.dense):
            return
        key = (event.site, event.kind)
        step, low, high = self._first.get(key, (run.step, event.lowest, event.highest))
        low, high = min(low, event.lowest), max(high, event.highest)
        self._first[key] = step, low, high
        if step == run.step:
            return
        known = key in self._drafts
        name = "binary cross entropy with logits" if binary else "cross entropy"
        draft = self.report(
            event.site,
            f"{name} got labels that are no probabilities",
            run=run,
            label=f"labels from {low:g} to {high:g}, at sampled steps",
            help=_swapped_help(event) or (_help(low, high) if binary else _CLASSES_HELP),
            unit="sampled losses",
            key=key,
        )
        draft.cost = "this loss has no lower end for them: it falls for as long as the outputs grow"
        if not known:
            draft.count, draft.first_step = 2, step


def _swapped_help(event: ProbabilitiesRead) -> str:
    return "swap the arguments: the loss takes the output of the model first, then the labels" if event.swapped else ""


def _help(low: float, high: float) -> str:
    """Say how such labels become probabilities.

    >>> _help(-1.0, 1.0)
    'turn labels of -1 and 1 into 0 and 1 with `(target + 1) / 2`'
    """
    if (low, high) == (-1.0, 1.0):
        return "turn labels of -1 and 1 into 0 and 1 with `(target + 1) / 2`"
    if (low, high) == (0.0, _BYTE):
        return "turn a mask of 0 and 255 into 0 and 1 with `(target > 0).float()`"
    return "give labels between 0 and 1, and leave out entries without a label by `weight` or a mask"
