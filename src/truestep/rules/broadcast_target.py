from __future__ import annotations

import math
from typing import ClassVar

from truestep.events import BackwardEnded, BroadcastOnTape, Event, LossComputed, Site, TapeRead
from truestep.findings import Confidence, Severity
from truestep.rules._rule import Progress, Rule

Shape = tuple[int, ...]


class BroadcastTarget(Rule):
    """Predictions and targets of different shapes broadcast, so every prediction is compared with every target.

    What it does
    ------------
    Checks the shapes of the arguments of an elementwise loss (``mse_loss``, ``l1_loss``, ``smooth_l1_loss``,
    ``huber_loss``) and, for losses written by hand, the sizes on the autograd tape. A target can have broadcast before,
    as the sum of a reward (N, 1) and a value (N,): a prediction (N, 1) and a target (N, N) are reported too. In a
    rollout of K environments it has K columns: this is reported if the model is called on batches of N rows, and at
    least as often on K.

    Why it matters
    --------------
    Predictions of shape (N, 1) and targets of shape (N,) become N x N differences. Their mean is smallest if every
    prediction is the mean of the batch, so the model learns a constant. The loss still falls.

    Example
    -------
    ::

        prediction = model(x)                       # (32, 1)
        loss = F.mse_loss(prediction, y)            # y is (32,): 1024 differences

    Fix
    ---
    Make both shapes equal::

        loss = F.mse_loss(prediction.squeeze(1), y)

    Known false alarms
    ------------------
    Pairwise losses written on purpose. A torch loss of (N, 1) and (1, N) with a mean or a sum is reported, because
    torch expands (N,) to (1, N) internally. Other pairs of equal rank, such as (N, Q, 1) and (N, 1, Q) in quantile
    regression, are reported with low confidence, and not at all with ``reduction="none"``. A single number as a target
    is not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/notes/broadcasting.html
    - https://docs.pytorch.org/docs/stable/generated/torch.nn.MSELoss.html
    """

    id = "broadcast-target"
    since = "0.1"
    severity = Severity.ERROR
    account = "loss"
    watches = (LossComputed, BroadcastOnTape, BackwardEnded)
    needs: ClassVar[tuple[type[Event], ...]] = ()

    KINDS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "gaussian_nll_loss", "poisson_nll_loss")

    def __init__(self) -> None:
        super().__init__()
        self._reported = False
        self._taped: dict[Site | None, int] = {}

    def unobserved(self, run: Progress) -> str:
        return "" if {LossComputed, TapeRead} & run.met else f"{LossComputed.absent}, {TapeRead.absent}"

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossComputed(broadcast=(input, target)) if event.kind in self.KINDS:
                confidence = _judge(input, target, event.reduction)
                if confidence is not None:
                    self._reported = True
                    self._found(event, input, target, confidence, run)
            case BroadcastOnTape() if not self._reported:
                self._tape(event, run)
            case BackwardEnded():
                self._reported = False

    def _found(self, event: LossComputed, input: Shape, target: Shape, confidence: Confidence, run: Progress) -> None:
        wide = math.prod(_wide(input, target))
        samples = (min if _made_before(input, target) else max)(math.prod(input), math.prod(target))
        self.report(
            event.site,
            f"{event.kind} compares every prediction with every target",
            run=run,
            label=f"input {_text(input)}, target {_text(target)}: {wide} differences",
            cost=f"{wide} differences for {samples} samples",
            help=_help(input, target, *event.given),
            confidence=confidence,
            unit="losses",
        )

    def _tape(self, event: BroadcastOnTape, run: Progress) -> None:
        """Report a loss written by hand the second time it is seen: equal sizes can be a coincidence once."""
        first = self._taped.setdefault(event.site, run.step)
        if first == run.step:
            return
        count = event.shape[0] if event.shape else 0
        exact = event.shape == (count, 1) and event.wide == (count, count)
        before = event.wide[:1] != event.wide[1:2] and len(event.wide) == 2
        help = "give predictions and targets the same shape: `prediction.squeeze(1)` or `y.unsqueeze(1)`"
        if before:
            made = f"({event.wide[1]}, 1) and ({event.wide[1]},)"
            help = f"give all terms of the targets the same shape before they are added: {made} make one for each pair"
        draft = self.report(
            event.site,
            "a loss compares every prediction with every target",
            run=run,
            label=f"the loss broadcast {_text(event.shape)} to {_text(event.wide)}",
            cost=f"{math.prod(event.wide)} differences for {math.prod(event.shape)} predictions",
            help=help,
            confidence=Confidence.HIGH if exact else Confidence.MEDIUM,
            unit="losses",
        )
        if draft.count == 1:
            draft.count, draft.first_step = 2, first


def _wide(a: Shape, b: Shape) -> Shape:
    rank = max(len(a), len(b))
    left, right = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(max(m, n) for m, n in zip(left, right, strict=True))


def _judge(input: Shape, target: Shape, reduction: str) -> Confidence | None:
    """Return the confidence that these two shapes should be equal; None if they differ on purpose.

    >>> _judge((32, 1), (32,), "mean").value
    'high'
    """
    if math.prod(input) <= 1 or math.prod(target) <= 1:
        return None
    if _made_before(input, target):
        return None if reduction == "none" else Confidence.MEDIUM
    column_and_row = len(input) == len(target) == 2 and 1 in input and 1 in target
    if len(input) == len(target) and not column_and_row:
        return None if reduction == "none" else Confidence.LOW
    if reduction == "none":
        return None if column_and_row else Confidence.MEDIUM
    return Confidence.HIGH if math.prod(input) == math.prod(target) else Confidence.MEDIUM


def _made_before(input: Shape, target: Shape) -> bool:
    """Return True if one of two shapes is a table that had broadcast before the loss."""
    return _wide(input, target) in (input, target)


def _help(input: Shape, target: Shape, predicted: str, wanted: str) -> str:
    if _made_before(input, target):
        made = predicted if len(input) == 2 and 1 not in input else wanted
        return f"give all terms of `{made}` the same shape before they are added"
    if len(input) >= len(target) and input[-1] == 1:
        return f"squeeze the input, `{predicted}.squeeze(-1)`, or write `{wanted}.unsqueeze(-1)`"
    if len(target) >= len(input) and target[-1] == 1:
        return f"squeeze the target, `{wanted}.squeeze(-1)`, or write `{predicted}.unsqueeze(-1)`"
    return f"give `{predicted}` and `{wanted}` the same shape before the loss"


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
