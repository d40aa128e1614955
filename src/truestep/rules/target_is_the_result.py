from __future__ import annotations

from dataclasses import dataclass

from truestep.events import Event, LossComputed, LossRead, RunEnded, Site, TargetsMatched
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import FINISHED, steps
from truestep.rules._rule import Progress, Rule

_LEAST = 3
_LEAST_LABELS = 100
_LEAST_STEPS = 10
_FIRST_STEPS = 3
_ROOTS = ("NllLoss", "MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "KlDiv", "CrossEntropy")
"""Operations of a loss that is differentiated alone."""
_HOW = {
    "detach": "equal its input",
    "argmax": "are the largest entries of its input",
    "round": "are its input, rounded",
    "threshold": "are its input, cut to 0 and 1",
    "softmax": "are the softmax of its input",
}


@dataclass(slots=True)
class _Line:
    """The losses of one line."""

    event: TargetsMatched
    begun: int
    reads: int = 0
    varied: int = 0
    labels: int = 0
    other: bool = False
    """Whether other targets were seen, or these were made in another way."""


class TargetIsTheResult(Rule):
    """The target of the loss is the model's own result: its detached values, or its most probable class.

    What it does
    ------------
    Compares targets with inputs of loss functions at sampled steps. Reports a loss with targets that equal its input,
    or its ``argmax``, rounding, threshold or softmax, from the first step of the run on and in all later ones, if the
    run has no other loss with a gradient, and no weights were loaded. Also reports a loss of values without a gradient
    that are equal at all these steps: a term that compares a teacher with itself.

    Why it matters
    --------------
    No label of the data reaches the model. Against its detached result the loss is zero; against its most probable
    class the model becomes more certain of the answers of its random weights. In the proof, 0.21 of the samples
    are right instead of 0.99.

    Example
    -------
    ::

        out = model(x)
        predicted = out.argmax(1)
        loss = F.cross_entropy(out, predicted)          # meant: y

    Fix
    ---
    Give the loss the labels of the data::

        loss = F.cross_entropy(out, y)

    Known false alarms
    ------------------
    Experiments that train a model from random weights on its own answers. Not reported: labels of the data that are
    predicted from the first step on, pseudo-labels beside a loss of labels or after it, adaptation of loaded weights,
    targets of a second view, of a teacher, of an average or of a target network, straight-through estimators, and terms
    of a sum.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    """

    id = "target-is-the-result"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    explains = ("evaluation-on-other-classes",)
    confidence = Confidence.MEDIUM
    watches = (TargetsMatched, LossComputed, LossRead)
    needs = (TargetsMatched, steps(_LEAST_STEPS), FINISHED)
    leads_to = ("loss-never-changes", "parameters-without-effect", "output-ignores-input")

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[Site | None, _Line] = {}
        self._losses: set[tuple[str, Site | None]] = set()
        """Kinds and lines of losses with a gradient."""
        self._roots: set[tuple[str, Site | None]] = set()
        """Operations and lines that backward passes began from."""

    def observe(self, event: Event, run: Progress) -> None:
        self._add(event, 1, run.step)

    def again(self, event: Event, times: int) -> None:
        self._add(event, times, _FIRST_STEPS + 1)

    def _add(self, event: Event, times: int, step: int) -> None:
        match event:
            case TargetsMatched():
                line = self._lines.setdefault(event.site, _Line(event, step))
                line.reads += times
                line.varied += times * event.varied
                line.labels += times * event.labels
                line.other |= (event.how, event.graph) != (line.event.how, line.event.graph) or not event.how
            case LossComputed(grad=True, input_from=made) if made:
                self._losses.add((event.kind, event.site))
            case LossRead():
                self._roots.add((event.root, event.site))

    def suspected(self) -> bool:
        return super().suspected() or any(line.event.how and not line.other for line in self._lines.values())

    def ended(self, event: RunEnded, run: Progress) -> None:
        alone = len(self._losses) == len(self._roots) == 1 and all(root.startswith(_ROOTS) for root, _ in self._roots)
        if event.how != "finished" or run.step < _LEAST_STEPS:
            return
        for line in self._lines.values():
            if line.event.graph and (not alone or run.weights.loaded):
                continue
            enough = line.varied >= _LEAST and line.labels >= _LEAST_LABELS and line.begun <= _FIRST_STEPS
            if enough and not line.other:
                self._found(line, run)

    def _found(self, line: _Line, run: Progress) -> None:
        (_, backward), first = next(iter(self._roots), ("", None)), line.event
        draft = self.report(
            first.site,
            f"the targets of the loss {_HOW[first.how]}" + ("" if first.graph else ", and neither has a gradient"),
            run=run,
            label="compares the result of the model with itself" if first.graph else "compares a value with itself",
            related=(Mark(backward, "the backward pass"),) if backward not in (None, first.site) else (),
            cost="no label of the data reaches the model" if first.graph else "the loss is zero, and trains nothing",
            help="give the loss the labels of the data" if first.graph else "give the loss a result with a gradient",
            unit="losses read",
        )
        draft.count = draft.total = line.reads
        draft.first_step = line.begun
