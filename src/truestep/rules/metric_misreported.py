"""Evidence from variables: a figure of the program beside the comparisons that it is computed from."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from truestep.events import (
    ClassFigureRead,
    EvaluationRan,
    Event,
    FigureOfTest,
    FigureRead,
    LoaderUnread,
    LossFigureRead,
    PartUnused,
    ResultCompared,
    RunEnded,
    Site,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._class_figures import FORMULAS, Judgement, judged
from truestep.rules._conditions import ENDED
from truestep.rules._formulas import sums_in_training, wrong_formulas_of
from truestep.rules._loader_names import is_of_test
from truestep.rules._loss_figures import HELP, mistaken
from truestep.rules._rule import Progress, Rule
from truestep.rules._syntax.data import results
from truestep.syntax import Program, Suspicion

_ACCURACY = frozenset({"acc", "accs", "accuracy", "accuracies"})
_SHARES = _ACCURACY | frozenset({"iou", "miou", "dice", "f1", "auc", "auroc", "precision", "recall"})
_EXACT = 2e-6
"""Relative difference up to which a figure is a quotient of counts; float32 has seven digits."""
_NEAR = 2e-3
"""Difference up to which a figure is right: it may be rounded."""
_LEAST_SAMPLES = 20
_MOST_SAMPLES = 100_000
"""Most samples of which a number of right predictions shows the divisor of a figure."""
_DIVIDED = "the right predictions divided by"
"""Begins the mistake of another divisor, which a single round figure can have by chance."""
_BEYOND = 1.001
_LEAST_BEYOND = 2
_OF_BATCHES = re.compile(r"batch|dice|per_")
"""Names of figures that may be means over batches: a Dice score is that of one of a few pictures."""
_SEVERAL = 3
"""Classes of a loss that was not read, after close reading was given up."""
_LEAST_WRONG = 2
"""Figures that are others than their names say; one alone is enough if it excludes a coincidence."""


_AVERAGES = {
    "means": (
        "the sum of the means of batches divided by the number of samples",
        "divide by the number of batches, or add up sums over samples",
    ),
    "counts": (
        "the number of right predictions divided by the number of batches",
        "divide by the number of samples",
    ),
    "tensors": (
        "a sum over samples divided by the number of tensors that hold them",
        "divide by the number of samples, the length of one of the tensors",
    ),
}
"""Message and remedy of an average, by the mistake as `ResultCompared` names it."""


class MetricMisreported(Rule):
    """The figure that a program computes of an evaluation is not that of its predictions.

    What it does
    ------------
    Repeats the statements after each call of an evaluation, on copies of its results, and counts the predictions that
    are equal to their targets. Compares their share with the variables that are called ``accuracy``, ``val_acc`` or the
    like and have a new value after the evaluation. Reports a variable that is not this share, nor another usual figure
    of it (in percent, as an error, as a mean over batches), and is one of these to six digits: the number of right
    predictions divided by the number of batches or by a larger number of samples, such as that of the training, the sum
    of the shares of the batches divided by the number of samples, the count of the last batch divided by the samples of
    all, counts that go on from the evaluations before, and a divisor of full batches where the last one is smaller.
    Also reports shares (accuracy, IoU, F1, AUC and the like) above 100, and quotients above 1 in programs that never
    multiply by 100. Values that a function computes and returns behind its loop over a DataLoader are read when the
    loop ends.

    Also reports averages of losses and errors by the sums of their loop: means of batches that are divided by the
    number of samples, and right predictions that are divided by the number of batches. Reports a loop over several
    batches that adds to sums and ends in a ``return`` or ``break`` in its first pass: the figure is that of one batch.

    Counts the predictions of each class in an evaluation: the largest scores of the result of each call, next to the
    variable beside it that holds the targets. Reports a value that is called a recall, a precision, an F1 score, an IoU
    or the like if it differs from the usual forms of this figure, and is another one to six digits, or the mean of the
    figures of many batches of a loader, some of them without a class, and further than 0.05 from it. Collects losses
    of the evaluation in nats, and reports a perplexity that is a power of 2 or of 10 of their mean, or the exponential
    of their sum, and bits per character that are nats. Reports an evaluation after the training with a value that the
    program calls one of a test, if it reads no samples with this name, and those with this name are never read. Also
    reports one on a DataLoader with the name of a test that holds the arrays of a validation, as after a copied line.

    The source shows formulas that cannot be their figure: a perplexity of 2 to the power of the loss, recall and
    precision exchanged, labels and predictions exchanged, areas under a curve of decisions in place of scores, also of
    those that a list collects over the batches, values compared with themselves, and intersections of boxes that are
    positive where both sides are negative; in a training, a sum that each report divides by the number of iterations
    since the last one, and that is not set to zero between them. A run reports them in functions that call an
    evaluation, or train. ``truestep lint`` also reports results of the last batch, and means of batches divided by
    samples.

    Why it matters
    --------------
    Early stopping, the choice of the best model and every conclusion follow this number, and the training is not
    affected: nothing else shows the mistake. In the proof, counters that are set to zero once, and not before each
    evaluation, report an accuracy of 0.94 where 0.99 of the predictions are right. In another one, the recall of a rare
    class divides by its predictions: the weights that are chosen by it find 16 % of the samples of this class, where
    those of the best recall find 48 %.

    Example
    -------
    ::

        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
        accuracy = correct / len(loader)                # the number of batches
        recall = tp / (tp + fp)                         # the precision
        perplexity = 2 ** loss                          # the loss is in nats

    Fix
    ---
    ::

        accuracy = correct / len(loader.dataset)
        recall = tp / (tp + fn)
        perplexity = math.exp(loss)

    Known false alarms
    ------------------
    A figure of a test that is meant to be that of other samples, in a program with a test set for later, and an area
    under the curve of decisions that is meant: their balanced accuracy. It is not reported beside the word
    ``balanced``, nor are counts of false answers without ``tp`` beside them, or a comparison with itself that is a part
    of another expression, as a test for NaN. Not reported: figures of a function that has ended, if it loops over no
    loader or computes them with functions that are not repeated, accuracies of evaluations with several comparisons,
    and evaluations with so many batches that not all of them are followed. Averages are not reported if they are
    divided by a variable that is not counted in the loop, or computed from lists.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader
    - https://lightning.ai/docs/torchmetrics/stable/pages/overview.html
    """

    id = "metric-misreported"
    since = "0.1"
    severity = Severity.ERROR
    account = "calls"
    confidence = Confidence.HIGH
    watches = (
        FigureRead, ResultCompared, ClassFigureRead, LossFigureRead, FigureOfTest, LoaderUnread, PartUnused,
        EvaluationRan,
    )  # fmt: skip
    needs = (FigureRead, ENDED)
    asks = "the figures are those of the predictions"

    @classmethod
    def inspect(cls, program: Program) -> Iterator[Suspicion]:
        return results.metric_misreported(program)

    def __init__(self) -> None:
        super().__init__()
        self._wrong: dict[str, list[tuple[FigureRead, str]]] = {}
        self._right: set[str] = set()
        self._known = False
        self._beyond: dict[str, list[FigureRead]] = {}
        self._calls: dict[Site | None, Site | None] = {}
        """Comparison to the call of the model that made its predictions."""
        self._named: dict[str, list[tuple[ClassFigureRead, Judgement]]] = {}
        self._of_losses: dict[str, list[tuple[LossFigureRead, str]]] = {}
        self._tests: list[FigureOfTest] = []
        self._functions: list[EvaluationRan] = []
        self._unread: dict[str, Site | None] = {}
        """Loaders and arrays with the name of a test that nothing reads."""
        self._reported: set[tuple[Site | None, str]] = set()
        """Call of the model and mistake of averages that were followed to the division."""

    def unobserved(self, run: Progress) -> str:
        return super().unobserved(run) or ("" if self._known else "no evaluation with comparisons that are all known")

    def observe(self, event: Event, run: Progress) -> None:
        if isinstance(event, ResultCompared):
            self._averaged(event, run)
        if isinstance(event, ClassFigureRead):
            meant = _OF_BATCHES.search(event.name.lower()) is not None
            batches = () if meant else event.batches
            judgement = judged(event.claim, event.values, event.counts, batches)
            self._named.setdefault(event.name, []).append((event, judgement))
        if isinstance(event, LossFigureRead):
            self._of_losses.setdefault(event.name, []).append((event, mistaken(event)))
        if isinstance(event, FigureOfTest):
            self._tests.append(event)
        if isinstance(event, EvaluationRan):
            self._functions.append(event)
        if isinstance(event, LoaderUnread | PartUnused) and is_of_test(event.name):
            self._unread.setdefault(event.name, event.site)
        if not isinstance(event, FigureRead) or not math.isfinite(event.value):
            return
        words, named = _words(event), _is_named(event)
        if event.samples >= _LEAST_SAMPLES:
            self._known |= named
            how = "" if _is_right(event) or not event.value else next(_mistakes(event), "")
            if how:
                self._wrong.setdefault(event.name, []).append((event, how))
            elif event.evaluations > 1:  # in the first one a count that goes on is right
                self._right.add(event.name)
        if self._is_beyond(event, words):
            self._beyond.setdefault(event.name, []).append(event)

    def _averaged(self, event: ResultCompared, run: Progress) -> None:
        """Report an average over batches that was followed to its mistake."""
        if event.how == "first":
            message = f"a `{event.name}` ends the loop of an evaluation in its first pass"
            label, help = "the figure is that of one batch", f"move the `{event.name}` out of the loop"
        elif event.how in _AVERAGES and event.samples > 1:
            what, help = _AVERAGES[event.how]
            self._reported.add((event.call, what))
            message, label = f"`{event.name}` is {what}", f"a batch of {event.samples:,} samples"
        else:
            self._calls[event.site] = event.call
            return
        self.report(
            event.site,
            message,
            run=run,
            label=label,
            related=(Mark(event.call, "the call"),) if event.call and event.call != event.site else (),
            cost="early stopping and the choice of a model follow this number",
            help=help,
            unit="figures",
        )

    def _is_beyond(self, event: FigureRead, words: set[str]) -> bool:
        """Return True if a share is above 1 and no percentage, which a function of another file can compute too."""
        share = not words.isdisjoint(_SHARES - {"acc", "accs"}) or (event.samples > 0 and _is_named(event))
        right = event.samples > 0 and _is_right(event)
        most = _BEYOND if "/" in event.name and not event.percent else 100 * _BEYOND
        return share and not right and event.value > most and event.value % 1 > 0

    def ended(self, event: RunEnded, run: Progress) -> None:
        if event.how not in ("finished", "exited"):
            return
        self._claimed(run)
        self._of_test(run)
        for name, found in self._wrong.items():
            figure, how = found[-1]
            several = {other for _, other in found} != {how} or name in self._right
            if (self._calls.get(figure.site), how) in self._reported:
                self._beyond.pop(name, None)
                continue
            counts = {one.equal for one, _ in found}
            enough = len(counts) > 1 if how.startswith(_DIVIDED) else len(found) > 1 or _is_named(figure)
            if not several and enough:
                share = figure.equal / figure.samples
                right = f"{figure.equal:,} of {figure.samples:,} predictions are right"
                label = f"{figure.value:.4g}, while {right}: {share:.4g}"
                self._found(figure, f"`{name}` is {how}", label, len(found), run)
                self._beyond.pop(name, None)
        for name, figures in self._beyond.items():
            if len(figures) >= _LEAST_BEYOND:
                figure = figures[-1]
                most = 1 if "/" in name else 100
                self._found(figure, f"`{name}` is above {most}", f"{figure.value:.4g}", len(figures), run)
        if not self._drafts:
            self._by_formula(run, run.losses.classes or _SEVERAL * bool(event.given_up))

    def _by_formula(self, run: Progress, classes: int) -> None:
        """Report the formulas that cannot be their figure, in functions that called an evaluation or trained."""
        steps = [site for _, site, _ in run.steps.tally if site is not None]
        for place, found in (*wrong_formulas_of(self._functions, classes), *sums_in_training(steps)):
            if not any(name in found.label for name in self._right):
                self.report(
                    place,
                    found.message,
                    run=run,
                    label=found.label,
                    cost="early stopping and the choice of a model follow this number",
                    help=found.help,
                    confidence=Confidence.MEDIUM,
                    unit="figures",
                )

    def _claimed(self, run: Progress) -> None:
        """Report the figures that are others than their names say."""
        named = {
            name: wrong
            for name, found in self._named.items()
            if not any(one.right for _, one in found) and (wrong := [pair for pair in found if pair[1].what])
        }
        right = {figure.claim for found in self._named.values() for figure, one in found if one.right}
        strong = sum(map(len, named.values())) >= _LEAST_WRONG
        for name, wrong in named.items():
            figure, judgement = wrong[-1]
            if judgement.of and figure.claim in right:
                continue  # the mean over batches is beside it on purpose
            if strong or judgement.strong:
                what, help = f"`{name}` is {judgement.what}", f"compute it as {FORMULAS[figure.claim]}{judgement.of}"
                self._found(figure, what, judgement.label, len(wrong), run, help)
        for name, of_losses in self._of_losses.items():
            kinds = {kind for _, kind in of_losses}
            if len(kinds) == 1 and (kind := kinds.pop()):
                last, label = of_losses[-1][0], f"{of_losses[-1][0].values[-1]:.4g}"
                self._found(last, f"`{name}` is {kind}", label, len(of_losses), run, HELP[last.claim])

    def _of_test(self, run: Progress) -> None:
        """Report the figures of a test that are those of other samples."""
        for test in self._tests if self._unread else ():
            part, made = next(iter(self._unread.items()))
            marks = (Mark(made, f"makes `{part}`"), Mark(test.site, "the call"))
            self.report(
                test.place,
                f"the figure of a test is that of other samples, and `{part}` is never read",
                run=run,
                label=f"`{test.name}` holds `{test.part}`" if test.part else f"its value is called `{test.name}`",
                related=tuple(mark for mark in marks if mark.site and mark.site != test.place),
                cost="the program reports the figure of samples that chose its model, or trained it",
                help=f"evaluate `{part}` here",
                unit="figures",
            )

    def _found(
        self,
        figure: FigureRead | ClassFigureRead | LossFigureRead,
        message: str,
        label: str,
        times: int,
        run: Progress,
        help: str = "divide the right predictions of one evaluation by the number of its samples",
    ) -> None:
        place = figure.place or figure.site
        beside = "the comparison" if isinstance(figure, FigureRead) else "the call"
        self.report(
            place,
            message,
            run=run,
            label=label,
            related=(Mark(figure.site, beside),) if figure.site and figure.site != place else (),
            cost="early stopping and the choice of a model follow this number",
            help=help,
            unit="figures",
            key=None if place is None else place.line,
        ).count = times


def _words(event: FigureRead) -> set[str]:
    return set(re.findall(r"[^\W_]+", f"{event.label} {event.name}".lower()))


def _is_named(event: FigureRead) -> bool:
    """Return True if a figure is called an accuracy."""
    return not _words(event).isdisjoint(_ACCURACY)


def _is_right(event: FigureRead) -> bool:
    """Return True if a figure is the accuracy, or another usual figure of the comparisons.

    >>> _is_right(FigureRead(name="acc", value=89.2, batches=3, equal=107, samples=120, shares=2.67))
    True
    >>> _is_right(FigureRead(name="acc", value=35.66666666, batches=3, equal=107, samples=120, shares=2.67))
    False
    """
    share = event.equal / event.samples
    mean, last = event.shares / event.batches, event.last[0] / max(1, event.last[1])
    shares = [share, mean, last] if event.batches == 1 else [share, mean]
    usual = [one for part in shares for one in (part, 1 - part)]
    counts = [event.equal, event.samples - event.equal]
    return (
        any(abs(event.value - scale * one) <= _NEAR * scale for scale in (1, 100) for one in usual)
        or event.value in counts
    )


def _mistakes(event: FigureRead) -> Iterator[str]:
    """Yield the known mistakes that lead to the value of a figure."""
    right, samples = event.equal, event.samples
    every, of = event.every
    known = [
        (right / event.batches, "the number of right predictions divided by the number of batches"),
        (event.shares / samples, "the sum of the shares of the batches divided by the number of samples"),
        (event.last[0] / samples, "the right predictions of the last batch divided by the samples of all"),
    ]
    if size := _batch_size(event):
        full = f"divided by {event.batches} batches of {size:,} samples, and the last one is smaller"
        known.append((right / (event.batches * size), full))
    if event.evaluations > 1:
        known += [
            (every / of, "a share over all evaluations so far"),
            (every / samples, "the right predictions of all evaluations so far, divided by the samples of one"),
        ]
    for value, name in known:
        if any(abs(event.value - scale * value) <= _EXACT * scale * max(value, 1e-3) for scale in (1, 100)):
            yield name
    if "/" not in event.name and (divisor := _divisor(event)) > samples:  # a quotient can be read within its loop
        yield f"{_DIVIDED} {divisor:,}, of {samples:,} samples"


def _batch_size(event: FigureRead) -> int:
    """Return the number of samples in each batch but the last, which is smaller; 0 if they differ.

    >>> _batch_size(FigureRead(name="acc", value=0.75, equal=480, samples=540, batches=5, last=(24, 28)))
    128
    """
    before, last = event.batches - 1, event.last[1]
    size, rest = divmod(event.samples - last, before) if before > 0 else (0, 0)
    return size if not rest and 0 < last < size else 0


def _divisor(event: FigureRead) -> int:
    """Return the whole number that the right predictions were divided by; 0 without one.

    >>> _divisor(FigureRead(name="acc", value=180 / 1200, equal=180, samples=300, batches=3))
    1200
    """
    for scale in (1, 100):
        number = scale * event.equal / event.value if event.value > 0 else 0.0
        if _LEAST_SAMPLES <= number <= _MOST_SAMPLES and abs(number - round(number)) <= _EXACT * number:
            return round(number)
    return 0
