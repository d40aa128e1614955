"""Evidence from evaluations: predictions agree with their targets less often than independent guesses would."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from truestep.events import BackwardEnded, Event, GradientsTaken, OptimizerStepped, ResultCompared, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._conditions import ENDED
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 20
_LEAST = 60
"""Least number of predictions in the evaluations of a line."""
_FAR = 5.0
"""Least distance from the number expected by chance, in standard deviations."""
_SHARE = 0.5
"""Greatest share of that number."""


@dataclass(slots=True)
class _Line:
    """The comparisons of one line after the first steps."""

    first: ResultCompared
    count: int = 0
    equal: int = 0
    expected: float = 0.0
    latest: tuple[int, int, float] = field(default=(-1, 0, 0.0))
    """Step of the latest evaluation, with its number of equal classes and the one expected."""

    def add(self, event: ResultCompared, step: int) -> None:
        """Enter a comparison."""
        equal = event.equal or 0
        self.count += sum(count for _, count in event.labels)
        self.equal += equal
        self.expected += event.expected
        _, before, expected = self.latest if self.latest[0] == step else (step, 0, 0.0)
        self.latest = step, before + equal, expected + event.expected

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
    step, as of adversarial examples, and those before step 20.

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
    watches = (ResultCompared, OptimizerStepped, BackwardEnded, GradientsTaken)
    needs = (ResultCompared, ENDED)
    asks = "predictions are better than guesses"

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[tuple[int, Site | None], _Line] = {}
        self._attacked = False
        """True after a backward pass without a step, as for inputs that are changed to be taken for another class."""

    def unobserved(self, run: Progress) -> str:
        enough = any(line.count >= _LEAST for line in self._lines.values())
        return super().unobserved(run) or ("" if enough else "no predicted classes that are compared with targets")

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case BackwardEnded() | GradientsTaken():
                self._attacked = True
            case OptimizerStepped() if self._trains(event.optimizer, run):
                self._attacked = False
            case ResultCompared(equal=int()) if run.step >= _LEAST_STEPS and not self._attacked:
                line = self._lines.setdefault((event.model, event.site), _Line(event))
                line.add(event, run.step)

    def _trains(self, optimizer: int, run: Progress) -> bool:
        """Return True if an optimizer holds parameters of a model; a perturbation of inputs has another one."""
        held = run.holds.get(optimizer, set())
        return any(not held.isdisjoint(model.parameters) for model in run.models.values())

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        right = {model for (model, _), line in self._lines.items() if line.equal > line.expected}
        for (model, site), line in self._lines.items():
            if model in right or not line.is_far:
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
