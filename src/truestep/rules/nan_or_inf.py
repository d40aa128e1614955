from __future__ import annotations

from truestep.events import (
    BackwardEnded,
    Event,
    GradientsRepaired,
    GradientsZeroed,
    LossNotFinite,
    OptimizerStepped,
    ScalerStepped,
)
from truestep.findings import Confidence, Mark, Severity
from truestep.rules._rule import Progress, Rule

REMEDIES = {
    "Log": "keep the argument of the logarithm above zero: use `log_softmax`, or `clamp(min=1e-8)`",
    "Div": "keep the divisor away from zero: add a small `eps` to it",
    "Reciprocal": "keep the divisor away from zero: add a small `eps` to it",
    "Sqrt": "keep the argument of the root above zero: add a small `eps` inside it",
    "Rsqrt": "keep the argument of the root above zero: add a small `eps` inside it",
    "Norm": "add a small `eps` under the norm: its gradient at zero is not finite",
    "LinalgVectorNorm": "add a small `eps` under the norm: its gradient at zero is not finite",
    "Pow": "bound the base of the power before it overflows",
    "Exp": "bound the argument of `exp` before it overflows: use `logsumexp` or `clamp(max=...)`",
    "Acos": "keep the argument of `acos` inside (-1, 1) with `clamp`",
    "Atan2": "keep both arguments of `atan2` away from zero",
}


class NanOrInf(Rule):
    """A loss that is NaN or infinite is trained on.

    What it does
    ------------
    Finds backward passes that start from a loss which is not finite and are followed by an optimizer step. Says whether
    the parameters were still finite, and which operations near the loss can make such a value.

    Why it matters
    --------------
    One such step writes NaN into the parameters and into the optimizer's state. From then on every output is NaN, and
    clipping, a smaller lr or better data cannot bring the run back.

    Example
    -------
    ::

        loss = -(target * torch.log(probability)).mean()    # log(0) is -inf
        loss.backward()
        optimizer.step()

    Fix
    ---
    Compute it in a form that stays finite, and stop at the first loss that is not::

        loss = F.cross_entropy(logits, target)
        if not torch.isfinite(loss):
            raise RuntimeError("loss is not finite")

    Known false alarms
    ------------------
    None known. Steps whose gradients are finite all the same (repaired with ``torch.nan_to_num``, or by hooks), steps
    that a gradient scaler skips, and batches that the script skips are not reported.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    - https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """

    id = "nan-or-inf"
    since = "0.1"
    severity = Severity.ERROR
    watches = (LossNotFinite, BackwardEnded, GradientsZeroed, GradientsRepaired, ScalerStepped, OptimizerStepped)
    needs = (BackwardEnded,)

    def __init__(self) -> None:
        super().__init__()
        self._loss: LossNotFinite | None = None
        self._pending: LossNotFinite | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossNotFinite():
                self._loss = event
            case BackwardEnded():
                if not event.onto_fresh:  # what earlier backward passes made is gone or used
                    self._pending = None
                self._pending, self._loss = self._loss or self._pending, None
            case GradientsZeroed(fresh=fresh) if fresh:
                self._pending = None
            case ScalerStepped(skipped=True) | GradientsRepaired():
                self._pending = None
            case OptimizerStepped(fresh=fresh, mixed=mixed):
                if self._pending is not None and fresh + mixed and not event.scaler:
                    self._found(self._pending, event, run)
                self._pending = None
            case _:
                pass

    def _found(self, loss: LossNotFinite, step: OptimizerStepped, run: Progress) -> None:
        if loss.parameters_finite:
            near = ", ".join(dict.fromkeys(loss.operations))
            state = "all parameters were finite before this step"
            state += f"; operations near the loss that can make it: {near}" if near else ""
        else:
            state = f"`{loss.first_parameter or 'a parameter'}` was already not finite"
        draft = self.report(
            loss.site,
            f"training went on from a loss that is {loss.value}",
            run=run,
            label=f"the loss is {loss.value} at step {run.step}",
            related=(Mark(step.site, f"`{run.optimizer_name(step.optimizer)}` stepped on its gradients"),),
            cost=state,
            help=_help(loss.operations) if loss.parameters_finite else _help(()),
            confidence=Confidence.MEDIUM,
            key="run",  # NaN stays NaN: whatever follows, at any line, is the same failure
        )
        if draft.count > 1 or not loss.parameters_finite:
            draft.confidence = Confidence.HIGH


def _help(operations: tuple[str, ...]) -> str:
    """Return the remedy for the first operation that has one.

    >>> _help(("MeanBackward0", "LogBackward0"))[:37]
    'keep the argument of the logarithm ab'
    """
    for operation in operations:
        remedy = REMEDIES.get(operation.partition("Backward")[0])
        if remedy:
            return remedy
    return "stop at the first loss that is not finite, and lower the lr or clip the gradients before it"
