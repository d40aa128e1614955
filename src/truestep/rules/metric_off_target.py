"""Evidence from copies: the statements after the call of a model are repeated up to the comparison with targets."""

from __future__ import annotations

from truestep.events import Event, LogitsRead, LossComputed, ResultCompared, RunEnded, Site
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

_OF_OTHERS = frozenset({"means", "counts", "tensors", "first", "shares", "collected"})
"""Mistakes of averages over several batches, of `metric-misreported`, and collected predictions."""
_LEAST_OUTSIDE = 20
_LEAST_SAMPLES = 60
_BETTER = 0.25
"""Least difference of the shares of right predictions by the scores, and by a program."""
_LOGITS = "binary_cross_entropy_with_logits"
_HOW = {
    "broadcast": (
        "a metric compares every prediction with every target",
        "give predictions and targets the same shape: `labels.squeeze(1)` or `predicted.unsqueeze(1)`",
    ),
    "one": (
        "a prediction is chosen over one number, so that it is always 0",
        "compare a single output with a threshold, or give the model one output per class",
    ),
    "samples": (
        "predictions are chosen over the samples of the batch, not over the classes",
        "pass the dimension of the classes, `argmax(dim=1)` for results of shape (N, C)",
    ),
    "all": (
        "one prediction is chosen over all samples and classes together",
        "pass the dimension of the classes, `argmax(dim=1)` for results of shape (N, C)",
    ),
    "least": (
        "a metric takes the smallest scores for the predictions",
        "take the largest scores: `argmax`, or `topk` with `largest=True`",
    ),
    "scores": (
        "a metric compares scores with the numbers of classes",
        "compare the index of the largest score: `argmax(dim=1)`, or the second result of `max`",
    ),
    "misread": (
        "predictions are not those that the scores of the model show",
        "take the largest score with `argmax(dim=1)`; compare a single one with 0, or its sigmoid with 0.5",
    ),
    "rows": (
        "predictions are compared with the targets of other samples",
        "select targets with the same index as inputs",
    ),
    "threshold": (
        "logits are compared with a threshold for probabilities",
        "compare logits with 0, or apply a sigmoid first",
    ),
    "cancelled": (
        "errors of both signs cancel in a metric",
        "take the absolute values or the squares before the mean",
    ),
    "spread": (
        "errors are divided by the spread of the predictions, where that of the targets belongs",
        "pass the targets first: `r2_score(targets, predictions)`",
    ),
    "swapped": (
        "a metric gets predictions where it expects targets",
        "pass the targets first and the predictions second",
    ),
    "scale": (
        "predictions and targets of a metric are on different scales",
        "convert both with the statistics of the training targets before they are compared",
    ),
    "padding": (
        "padded positions count in a metric, and not in the loss",
        "leave out positions with padding as target",
    ),
    "own": (
        "samples are searched among themselves, and the nearest of each is the sample itself",
        "leave out each sample from its own search: `similarity.fill_diagonal_(-torch.inf)`",
    ),
    "itself": (
        "a metric compares values with themselves",
        "compare predictions with targets",
    ),
}
"""Failure and remedy, by the mistake as `ResultCompared` names it."""


class MetricOffTarget(Rule):
    """A metric compares predictions with the wrong targets, along the wrong dimension or in the wrong units.

    What it does
    ------------
    Repeats the statements after a call of a model, on copies of its result, up to the comparison with targets, also in
    functions of the program. Reports predictions of shape (N,) against targets of shape (N, 1); ``argmax`` over the
    samples, over a single output or over everything; the smallest scores, if the targets are among them more seldom
    than by chance; scores compared for equality with the numbers of classes; targets of other rows than the inputs, of
    a loss as well, if other calls have compared both tables row by row; and a threshold in the middle between 0 and 1
    for the logits of a model that is trained with ``binary_cross_entropy_with_logits``, or by a loss that squashes them
    by hand wherever it reads them, if many lie outside of 0 to 1.

    Statements behind a loop over a DataLoader are repeated, too, with the lists in which it collected the results, also
    as probabilities, classes or on another scale; scalers of scikit-learn are repeated by their arithmetic.

    Compares the right predictions with those that the scores themselves show: the largest ones of several, or single
    ones above 0 or 0.5. Reports a comparison of 60 samples or more if the scores are right for a quarter of the samples
    more than the predictions: for several scores, if each prediction is one of their classes; for single ones and two
    classes of similar size, if all predictions are alike, as of probabilities that are truncated, or many lie outside
    of the classes, as of logits that are rounded.

    Of errors it reports the absolute value or the square of their mean, in which both signs cancel; their sum of
    squares divided by that of the predictions around their mean (R2 with swapped arguments); functions of scikit-learn
    that get predictions first and targets second; predictions that follow the targets at a correlation of 0.9 with an
    error of more than twice the spread of the targets, if these are on another scale than those of the training; and
    values that are compared with themselves, also labels of neighbours if each sample is its nearest neighbour. It
    reports accuracies that count positions with the class as target that every loss of the training leaves out.

    Why it matters
    --------------
    No operation raises an error, and the model trains as before, but its metric measures something else. Early
    stopping, the choice of the best model and every conclusion follow that number. In the proof, an accuracy of 0.98 is
    measured as 0.34.

    Example
    -------
    ::

        correct += (logits.argmax(1) == labels).sum()       # labels are (N, 1): N x N comparisons
        correct += (logits.max(1)[0] == labels).sum()       # the largest score, not its class

    Fix
    ---
    ::

        correct += (logits.argmax(1) == labels.squeeze(1)).sum()

    Known false alarms
    ------------------
    A threshold of 0.5 on logits that was chosen for precision. Not reported: thresholds that the program computes or
    searches, comparisons that are not in the function
    of the call or in its callers, top-k metrics, comparisons of two results, classes in second place beside those in
    first place, differences of all pairs that both sides spell out (``a[:, None] - b[None, :]``), operations of
    libraries, and losses on copies of rows, as a DataLoader makes them.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    - https://docs.pytorch.org/docs/stable/generated/torch.argmax.html
    """

    id = "metric-off-target"
    since = "0.1"
    severity = Severity.ERROR
    confidence = Confidence.MEDIUM
    account = "calls"
    watches = (ResultCompared, LossComputed, LogitsRead)
    needs = (ResultCompared,)
    explains = ("metric-misreported", "predictions-worse-than-chance")
    asks = "metrics compare like with like"

    def __init__(self) -> None:
        super().__init__()
        self._kinds: set[str] = set()
        """Losses of the training."""
        self._read: dict[Site | None, _Read] = {}
        """Line of a comparison to its predictions."""
        self._logits: dict[int, bool] = {}
        """Model to whether the loss squashes its results wherever it reads them."""

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossComputed(grad=True):
                self._kinds.add(event.kind)
            case LogitsRead():
                self._logits[event.model] = event.squashed and self._logits.get(event.model, True)
            case ResultCompared(how="threshold"):
                squashed = self._kinds == {_LOGITS} or self._logits.get(event.model, False)
                if event.outside >= _LEAST_OUTSIDE and squashed:
                    self._found(event, run, f"{event.outside} % of the results lie outside of 0 to 1")
            case ResultCompared(how="" | "collected", equal=int()):
                self._read.setdefault(event.site, _Read(event)).add(event)
            case ResultCompared(how=str(how)) if how in _OF_OTHERS:
                return
            case ResultCompared(how=str(how)) if how:
                shapes = f"predictions {_text(event.predicted)}, targets {_text(event.target)}"
                self._found(event, run, _label(event) if event.name or event.spreads else shapes)

    def ended(self, event: RunEnded, run: Progress) -> None:
        plain = {read.first.model for read in self._read.values() if read.samples and read.equal >= read.plain}
        for read in self._read.values():
            better = read.plain - read.equal
            if read.samples < _LEAST_SAMPLES or better < _BETTER * read.samples:
                continue
            if read.first.model not in plain:
                label = f"{read.equal:,} of {read.samples:,} are right, and {read.plain:,} by the scores themselves"
                self._found(read.first, run, label, "misread")

    def _found(self, event: ResultCompared, run: Progress, label: str, how: str = "") -> None:
        message, help = _HOW[how or event.how]
        place, other = (event.call, event.site) if event.how == "rows" else (event.site, event.call)
        self.report(
            place,
            message,
            run=run,
            label=label,
            related=(Mark(other, "the call" if other is event.call else "compared here"),) if other != place else (),
            help=help,
            unit="comparisons",
            key=(event.call if event.how == "scale" else event.site, event.how),
        )


class _Read:
    """Predictions of a comparison, next to those that the scores show, since the latest ones that can be meant."""

    __slots__ = ("equal", "first", "plain", "samples")

    def __init__(self, first: ResultCompared) -> None:
        self.first = first
        self.equal = self.plain = self.samples = 0

    def add(self, event: ResultCompared) -> None:
        if event.plain is None:
            self.equal = self.plain = self.samples = 0
            return
        self.equal += event.equal or 0
        self.plain += event.plain
        self.samples += sum(count for _, count in event.labels)


def _label(event: ResultCompared) -> str:
    if event.spreads:
        predicted, of_predicted, target, of_target, trained, of_trained = event.spreads
        return (
            f"predictions {predicted:.3g} +- {of_predicted:.3g}, targets {target:.3g} +- {of_target:.3g}; "
            f"trained on {trained:.3g} +- {of_trained:.3g}"
        )
    return f"{event.outside} % of the targets are padding" if event.how == "padding" else f"`{event.name}`"


def _text(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
