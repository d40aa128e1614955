"""Evidence from evaluations: predictions agree with their targets less often than independent guesses would.

Or they agree with other numbers of the classes, one for each.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsTaken,
    LossComputed,
    OptimizerStepped,
    ResultCompared,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import ENDED
from truestep.rules._renumbered import Confused, renumbered
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 20
_LEAST = 60
"""Least number of predictions in the evaluations of a line."""
_FAR = 5.0
"""Least distance from the number expected by chance, in standard deviations."""
_SHARE = 0.5
"""Greatest share of that number."""
_OFTEN = 0.75
"""Share of right predictions from which a call reads the numbers of the classes as the training does."""
_ENOUGH = 100
"""Predictions of the latest evaluations that are looked at together."""
_ON_CLASSES = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"})
_LATEST = 8
"""Steps after which a model that they did not train is not the one that learns."""
_SHOWN = 4


@dataclass(slots=True)
class _Line:
    """The comparisons of one line after the first steps."""

    first: ResultCompared
    count: int = 0
    equal: int = 0
    expected: float = 0.0
    latest: tuple[int, int, float] = field(default=(-1, 0, 0.0))
    """Step of the latest evaluation, with its number of equal classes and the one expected."""
    wrong: dict[int, Confused] = field(default_factory=dict)
    """Step to the predictions of the calls that are seldom right."""
    labels: set[tuple[tuple[int, int], ...]] = field(default_factory=set)
    """Targets of these calls."""

    def add(self, event: ResultCompared, step: int) -> None:
        """Enter a comparison."""
        equal = event.equal or 0
        self.count += sum(count for _, count in event.labels)
        self.equal += equal
        self.expected += event.expected
        _, before, expected = self.latest if self.latest[0] == step else (step, 0, 0.0)
        self.latest = step, before + equal, expected + event.expected
        if not _is_often_right(event):
            counts = self.wrong.setdefault(step, Counter())
            counts.update({(target, predicted): count for target, predicted, count in event.confused})
            self.labels.add(event.labels)

    @property
    def renumbered(self) -> dict[int, int]:
        """The number that predictions have for each class of the targets in the latest evaluations, if it is clear."""
        counts: Confused = Counter()
        for confused in reversed(self.wrong.values()):
            counts += confused
            if counts.total() >= _ENOUGH:
                break
        return renumbered(counts)

    @property
    def is_far(self) -> bool:
        """Return True if far fewer predictions are right than by chance, over all evaluations and in the latest."""
        if self.count < _LEAST or not self.expected:
            return False
        spread = math.sqrt(self.expected * (1 - self.expected / self.count))
        _, equal, expected = self.latest
        far = self.expected - self.equal >= _FAR * spread > 0 and self.equal <= _SHARE * self.expected
        return far and equal <= _SHARE * expected


class PredictionsWorseThanChance(Rule):
    """A trained classifier is right less often than guesses: it has learned other labels than the metric has.

    What it does
    ------------
    Repeats the statements after a call in an evaluation, on copies of its result, up to the comparison of the predicted
    classes with their targets. Counts how many are equal, and how many would be if the predictions, with the same
    number of each class, did not depend on the targets. Reports a model if over all its evaluations, and in the latest,
    at most half as many are right as by chance, by five standard deviations or more.

    Also reports targets with other numbers of the classes, as those of an encoder that is fitted again to the test: for
    at least three classes, each has its own predicted class, at least two of them another one than theirs, and at least
    three quarters of the predictions are right with the numbers exchanged. Lists that hold the predictions and the
    targets of all batches count as the comparison that the program makes of them behind the loop.

    Why it matters
    --------------
    A model that has learned nothing is as good as a guess. One that is worse has learned to avoid the right answer:
    labels of training and evaluation are numbered differently (shifted by one, two classes swapped, folders in another
    order), the smallest score is taken for the largest, or the targets of the loss are inverted. In the proof, labels
    that the training shifts by one give an accuracy of 0.00 with five classes.

    Example
    -------
    ::

        loss = F.cross_entropy(model(x), y - 1)             # classes from 1, from file
        correct += (model(x).argmax(1) == y).sum()          # and here as they are

    Fix
    ---
    Number the classes once, where the data are read, and use these numbers everywhere::

        y = y - 1

    Known false alarms
    ------------------
    Evaluations of few groups of samples that are alike. Not reported: models that are right at another line, such as
    those that are attacked on purpose, evaluations of inputs with gradients, those after a backward pass without a
    step, as of adversarial examples, those before step 20, and models that another one is trained beside, after their
    own training. Other numbers of the classes are not reported if any model is often right on the same targets, as
    before the labels of a stream change, if another comparison of the same calls is, or without a loss on classes.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html
    - https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html
    """

    id = "predictions-worse-than-chance"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "loss"
    watches = (ResultCompared, OptimizerStepped, BackwardEnded, GradientsTaken, LossComputed)
    needs = (ResultCompared, ENDED)
    asks = "predictions are better than guesses"

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[int, Site | None], _Line] = {}
        self._right: set[tuple[tuple[int, int], ...]] = set()
        """Targets of calls that are often right."""
        self._on_classes = False
        """Whether a loss of the training has classes as its targets."""
        self._latest: deque[set[int]] = deque(maxlen=_LATEST)
        """Models that the latest steps have trained."""
        self._ever: set[int] = set()
        """Models that any step has trained."""
        self._attacked = False
        """True after a backward pass without a step, as for inputs that are changed to be taken for another class."""

    def unobserved(self, run: Progress) -> str:
        enough = any(line.count >= _LEAST for line in self._lines.values())
        return super().unobserved(run) or ("" if enough else "no predicted classes that are compared with targets")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded() | GradientsTaken():
                self._attacked = True
            case OptimizerStepped() if trained := self._trained_by(event.optimizer, run):
                self._attacked = False
                self._latest.append(trained)
                self._ever |= trained
            case LossComputed(grad=True):
                self._on_classes |= event.kind in _ON_CLASSES
            case ResultCompared(equal=int()) if run.step >= _LEAST_STEPS and not self._attacked:
                if event.model in self._ever.difference(*self._latest):
                    return  # another model has learned since then, such as one that makes the inputs of this one
                if _is_often_right(event):
                    self._right.add(event.labels)
                line = self._lines.setdefault((event.model, event.site), _Line(event))
                line.add(event, run.step)

    def _trained_by(self, optimizer: int, run: Progress) -> set[int]:
        """Return the models with parameters that an optimizer holds; a perturbation of inputs has another one."""
        held = run.holds.get(optimizer, set())
        return {number for number, model in run.models.items() if not held.isdisjoint(model.parameters)}

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        right = {model for (model, _), line in self._lines.items() if line.equal > line.expected}
        for (model, site), line in self._lines.items():
            others = {} if self._reads_as_trained(model, site, line) else line.renumbered
            if others:
                self._tell_numbers(model, site, line, others, run)
            if others or model in right or not line.is_far:
                continue
            share, chance = line.equal / line.count, line.expected / line.count
            call = line.first.call
            draft = self.report(
                site,
                f"the predictions of `{run.model_name(model)}` are worse than guesses",
                run=run,
                label=f"{share:.1%} right, {chance:.1%} by chance",
                related=() if call is None or call == site else (Mark(call, "the call"),),
                cost=f"{line.equal:,} of {line.count:,} predictions are right, {line.expected:.0f} would be by chance",
                help="compare the numbers of the classes in the targets of the loss with those in this comparison",
                unit="predictions",
                key=(model, site),
            )
            draft.count, draft.total = line.count - line.equal, line.count

    def _reads_as_trained(self, model: int, site: Site | None, line: _Line) -> bool:
        """Return True if the targets of a line, or others of the same calls, were often right: their numbers are known.

        So are those of a model without a loss on classes, which numbers its groups itself.
        """
        beside = [
            other
            for (number, place), other in self._lines.items()
            if number == model and place != site and other.first.call == line.first.call
        ]
        known = any(other.equal >= _OFTEN * other.count for other in beside)
        return known or not self._on_classes or not line.labels.isdisjoint(self._right)

    def _tell_numbers(self, model: int, site: Site | None, line: _Line, others: dict[int, int], run: Progress) -> None:
        """Report classes that have other numbers in the targets than in the predictions."""
        call = line.first.call
        wrong = sum(line.wrong.values(), Counter())
        matched = sum(wrong[target, other] for target, other in others.items())
        moved = [(target, other) for target, other in others.items() if target != other]
        pairs = ", ".join(f"{target} as {other}" for target, other in moved[:_SHOWN])
        right = sum(wrong[target, target] for target in others)
        draft = self.report(
            site,
            f"`{run.model_name(model)}` has learned other numbers of the classes than those of these targets",
            run=run,
            label=f"predicts class {pairs}{', ...' if len(moved) > _SHOWN else ''}",
            related=() if call is None or call == site else (Mark(call, "the call"),),
            cost=f"{right:,} of {wrong.total():,} predictions are right, {matched:,} with the numbers exchanged",
            help="number the classes once, with those of the training, and use these numbers for all parts",
            unit="predictions",
            key=(model, site),
        )
        draft.count, draft.total = wrong.total() - right, wrong.total()


def _is_often_right(event: ResultCompared) -> bool:
    return (event.equal or 0) >= _OFTEN * sum(count for _, count in event.labels)
