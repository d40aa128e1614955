from __future__ import annotations

from collections import Counter
from math import prod
from typing import ClassVar

from truestep.events import ClassesTrained, Event, LabelsRead, ResultCompared, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_LEAST_STEPS = 3
_LEAST_SHARE = 0.05
_ONE_OF_MOST = 0.9
"""Share of a class in the training above which an evaluation on this class alone is representative."""
_SHOWN = 5
_LEAST_ROWS = 20
_LEAST_OF_CLASS = 5
"""Fewer labels of one number may be positions in a batch."""
_FOURTH = 4
_CHANCE = 1e-6


class EvaluationOnOtherClasses(Rule):
    """The labels of the evaluation are not those of the training.

    What it does
    ------------
    Finds the columns of labels that the targets of a loss in training, and those that an evaluation compares with
    results, were taken from: tensors, arrays and lists that variables of the program hold, with DataLoaders or without.
    Reports an evaluation with classes that are nowhere in the column of the training (data sorted by class that are cut
    in two, labels that begin at 1 in one of the two), and runs with evaluations on one class only while the training
    has others. Where no variable holds the labels, compares those of the evaluation with those of sampled steps, if
    these are so many that a class of the training would be among them.

    Why it matters
    --------------
    The metric measures nothing: classes that were not trained are always wrong, and a model that knows one answer gets
    100 % of an evaluation on that class. In the proof, the data are sorted by class, and the accuracy on fresh points
    is 0.80 instead of 1.00.

    Example
    -------
    ::

        train, test = x[:800], x[800:]          # sorted by class: the last two are in the test only

    Fix
    ---
    Permute the rows before they are cut::

        order = torch.randperm(len(x))
        train, test = x[order[:800]], x[order[800:]]

    Known false alarms
    ------------------
    Classes that a model is to recognise without a sample (zero-shot learning). Not reported: runs that train on several
    columns of labels (tasks one after another, clients, folds), labels that are made for each batch, rare classes, and
    classes of predictions that were converted, as by `argmax(1) + 1`.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.random_split
    """

    id = "evaluation-on-other-classes"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "samples"
    watches = (LabelsRead, ClassesTrained, ResultCompared)
    needs: ClassVar[tuple[type[Event], ...]] = ()
    explains = ("predictions-worse-than-chance",)
    asks = "the evaluation has the classes of the training"

    def __init__(self) -> None:
        super().__init__()
        self._trained: dict[tuple[tuple[int, int], ...], int] = {}
        """Classes with their counts, in a column of the training, to the number of times that it was read."""
        self._evaluated: dict[tuple[tuple[int, int], ...], LabelsRead] = {}
        self._again: set[tuple[tuple[int, int], ...]] = set()
        """Evaluated classes that the training was read after: it went on with the samples that are known."""
        self._steps: Counter[int] = Counter()
        """Labels of sampled steps."""
        self._ignored: set[int] = set()
        """Labels that a loss leaves out."""
        self._compared: dict[tuple[int, Site | None], Counter[int]] = {}
        """Model and line to the labels that its predictions were compared with."""
        self._reached: set[int] = set()
        """Classes that were predicted and right: those of a prediction that was converted are not the training's."""

    def unobserved(self, run: Progress) -> str:
        known = (self._trained and self._evaluated) or (self._steps and self._compared)
        return super().unobserved(run) or ("" if known else LabelsRead.absent)

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, LabelsRead) and event.training:
            self._trained[event.classes] = self._trained.get(event.classes, 0) + 1
            self._again.update(self._evaluated)
        elif isinstance(event, LabelsRead):
            self._evaluated.setdefault(event.classes, event)
        elif isinstance(event, ClassesTrained):
            self._steps.update(dict(event.labels))
            self._ignored.add(event.ignored)
        elif isinstance(event, ResultCompared) and event.labels:
            self._compared.setdefault((event.model, event.site), Counter()).update(dict(event.labels))
            self._reached.update(target for target, predicted, _ in event.confused if target == predicted)

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited", "stopped"):
            return
        if not self._trained or not self._evaluated:
            self._judge_steps(run)
        if len(self._trained) != 1:
            return
        ((trained, reads),) = self._trained.items()
        counts = dict(trained)
        if reads < _LEAST_STEPS or len(counts) < 2:
            return
        for classes, read in self._evaluated.items():
            if len(self._evaluated) > 1 and classes not in self._again:
                continue  # it may be that of a later task, with a training between the steps that were read
            total = sum(count for _, count in classes)
            absent = [(number, count) for number, count in classes if number not in counts.keys() | self._reached]
            rows = sum(count for _, count in absent)
            if rows >= _LEAST_SHARE * total:
                names = ", ".join(str(number) for number, _ in absent[:_SHOWN])
                names += ", ..." if len(absent) > _SHOWN else ""
                noun = "class" if len(absent) == 1 else "classes"
                message = f"the training has no sample of {noun} {names}, which the evaluation counts"
                self._tell(read, run, message, f"{rows:,} of {total:,} labels of the evaluation")
                return  # the others are compared with the same training
        only = {number for classes in self._evaluated for number, _ in classes}
        alone = only.pop() if len(only) == 1 else None
        if alone in counts and counts[alone] <= _ONE_OF_MOST * sum(counts.values()):
            read = next(iter(self._evaluated.values()))
            total = sum(count for _, count in read.classes)
            message = f"the evaluation has samples of class {alone} only, and the training has {len(counts)} classes"
            self._tell(read, run, message, f"all {total:,} labels are equal")

    def _judge_steps(self, run: Progress) -> None:
        """Report labels of an evaluation that sampled steps would have shown."""
        sampled = self._steps.total()
        if len(self._steps) < 2 or any(labels.keys() <= self._steps.keys() for labels in self._compared.values()):
            return
        for (_, site), labels in self._compared.items():
            total = labels.total()
            known = self._steps.keys() | self._ignored | self._reached
            absent = {
                number: count for number, count in labels.items() if number not in known and count >= _LEAST_OF_CLASS
            }
            # A class with a fourth of its share in the evaluation would have been missed with this probability.
            missed = prod((1 - count / total / _FOURTH) ** sampled for count in absent.values())
            if total < _LEAST_ROWS or sum(absent.values()) < _LEAST_SHARE * total or missed > _CHANCE:
                continue
            names = ", ".join(str(number) for number in sorted(absent)[:_SHOWN]) + (
                ", ..." if len(absent) > _SHOWN else ""
            )
            noun = "class" if len(absent) == 1 else "classes"
            self.report(
                site,
                f"the training has no sample of {noun} {names}, which the evaluation counts",
                run=run,
                label="compared here",
                cost=f"{sum(absent.values()):,} of {total:,} labels, and not one of {sampled:,} in the training",
                help="split the samples at random, and number the classes once for both parts",
                unit="evaluations",
                key=site,
            )
            return

    def _tell(self, read: LabelsRead, run: Progress, message: str, cost: str) -> None:
        self.report(
            read.made or read.site,
            message,
            run=run,
            label=f"stores `{read.table}`",
            related=(Mark(read.site, "the comparison"),) if read.made else (),
            cost=cost,
            help="split the samples at random, and give both parts the same numbers of classes",
            unit="evaluations",
            key=read.table,
        )
