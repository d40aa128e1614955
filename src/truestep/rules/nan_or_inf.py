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
_OVERFLOWING = ("Pow", "Exp")
"""Operations with a finite gradient wherever their result is finite."""
_HUGE = 1e6
"""A previous loss above this value was already diverging: no single operation is the cause."""


class NanOrInf(Rule):
    """Training continues with a loss that is NaN or infinite.

    What it does
    ------------
    Finds backward passes that start from a non-finite loss and are followed by an optimizer step. The report shows the
    first non-finite variable of the loop at that moment (a batch, an output), or the first non-finite parameter, the
    one nearest to the loss, and if the optimizer state was finite. It also names the operations near the loss that can
    produce such a value. All this is read only after a non-finite loss.

    Why it matters
    --------------
    One such step writes NaN into the parameters and the optimizer state. From then on every output is NaN, and
    clipping, a smaller lr or better data cannot recover the run.

    Example
    -------
    ::

        loss = -(target * torch.log(probability)).mean()    # log(0) is -inf
        loss.backward()
        optimizer.step()

    Fix
    ---
    Compute the loss in a form that stays finite, and stop at the first loss that is not::

        loss = F.cross_entropy(logits, target)
        if not torch.isfinite(loss):
            raise RuntimeError("loss is not finite")

    Known false alarms
    ------------------
    None known. Not reported: steps with finite gradients in spite of the loss (repaired with ``torch.nan_to_num`` or by
    hooks), steps that a gradient scaler skips, and batches that the script skips.

    References
    ----------
    - https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    - https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html
    """

    id = "nan-or-inf"
    since = "0.1"
    severity = Severity.ERROR
    account = "gradients"
    watches = (LossNotFinite, BackwardEnded, GradientsZeroed, GradientsRepaired, ScalerStepped, OptimizerStepped)
    needs = (BackwardEnded, OptimizerStepped)

    def __init__(self) -> None:
        super().__init__()
        self._loss: LossNotFinite | None = None
        self._pending: LossNotFinite | None = None

    def observe(self, event: Event, run: Progress) -> None:
        match event:
            case LossNotFinite():
                self._loss = event
            case BackwardEnded():
                if not event.onto_fresh:  # gradients of earlier backward passes are cleared or used
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

    def _found(self, loss: LossNotFinite, step: OptimizerStepped, run: Progress) -> None:
        mark = Mark(step.site, f"`{run.optimizer_name(step.optimizer)}` stepped on its gradients")
        draft = self.report(
            loss.site,
            f"training continued with a loss that is {loss.value}",
            run=run,
            label=f"the loss is {loss.value} at step {run.step}",
            related=(*_first_variable(loss), mark),
            cost="; ".join(_state(loss, run)),
            help=_help(loss, run),
            confidence=Confidence.MEDIUM,
            key="run",  # NaN stays NaN: every later one, at any line, is the same failure
        )
        if draft.count > 1 or not loss.parameters_finite:
            draft.confidence = Confidence.HIGH


def _first_variable(loss: LossNotFinite) -> tuple[Mark, ...]:
    """Mark the first variable that was not finite, unless it only shows parameters that were not."""
    if not loss.variable or loss.variable_site == loss.site:
        return ()
    if not loss.parameters_finite and loss.variable_tracked:
        return ()
    label = f"`{loss.variable}` is the first variable that is not finite: {loss.variable_holds}"
    if loss.variables_finite:
        label += f"; {_listed(loss.variables_finite)} before it {'is' if len(loss.variables_finite) == 1 else 'are'}"
    return (Mark(loss.variable_site, label),)


def _state(loss: LossNotFinite, run: Progress) -> list[str]:
    """Return clauses that describe the finite and non-finite values at the loss."""
    before = [] if loss.before is None else [f"the loss read before was {loss.before:g}"]
    near = ", ".join(dict.fromkeys(loss.operations))
    operations = [f"operations near the loss that can produce it: {near}"] if near and not _is_given(loss) else []
    if loss.parameters_finite:
        return ["all parameters were finite before this step", *operations, *before]
    state = f"`{loss.first_parameter or 'a parameter'}` was already not finite"
    if loss.bad_parameters > 1:
        state += f", the first of {loss.bad_parameters}"
    said = [state]
    if loss.nearest:
        nearer = "the one nearer to it is" if loss.finite_nearer == 1 else f"the {loss.finite_nearer} nearer to it are"
        said.append(f"the nearest such one to the loss is `{loss.nearest}`, {nearer} finite")
    if loss.moment:
        finite = "is finite, and so were its gradients" if loss.moment_finite else "is not finite either"
        if loss.moment == "exp_avg" and not loss.moment_finite:
            finite += ": an earlier gradient was not"
        said.append(f"its `{loss.moment}` in the optimizer {finite}")
        said += [] if loss.moment_finite else operations
    return said + before


def _is_given(loss: LossNotFinite) -> bool:
    """Return True if the first non-finite variable is an input, not computed from parameters."""
    return bool(loss.variable) and not loss.variable_tracked


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _help(loss: LossNotFinite, run: Progress) -> str:
    """Return the remedy: for non-finite data, for the first operation with a known remedy, else the general one."""
    if loss.moment and loss.moment_finite and _dtype(loss.first_parameter, run) == "float16":
        return "keep the weights in float32 under `torch.autocast`, or give an `eps` of 1e-4: 1e-8 is zero in float16"
    if loss.parameters_finite and _is_given(loss):
        return f"keep non-finite values out of `{loss.variable}`: check the data after reading it"
    exploded = loss.before is not None and abs(loss.before) > _HUGE
    if not exploded and (loss.parameters_finite or not loss.moment_finite):
        for operation in loss.operations:
            name = operation.partition("Backward")[0]
            if name in REMEDIES and (loss.parameters_finite or name not in _OVERFLOWING):
                return REMEDIES[name]
    return "stop at the first loss that is not finite, and lower the lr or clip the gradients before it"


def _dtype(name: str, run: Progress) -> str:
    return next((met.dtype for met in run.parameters.values() if met.name == name), "")
