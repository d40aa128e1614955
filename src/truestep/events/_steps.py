"""Gradients between backward passes: cleared, clipped, scaled, used by a step; and the schedule after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, RepeatKind, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsZeroed(Event):
    """``zero_grad()`` of an optimizer or a module was called by the user."""

    absent: ClassVar[str] = "no call of zero_grad"
    repeats: ClassVar[RepeatKind] = "by call"
    site: Site | None = None
    optimizer: int | None = None
    model: int | None = None
    fresh: int = 0
    """Number of observed gradients cleared by this call that no step had used yet."""
    used: int = 0
    """Number of observed gradients cleared by this call that a step had used."""
    observed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerStepped(Event):
    """An optimizer stepped (the outermost ``step`` if nested). The counts are numbers of observed parameters."""

    absent: ClassVar[str] = "no optimizer step"
    repeats: ClassVar[RepeatKind] = "by call"
    optimizer: int
    site: Site | None = None
    observed: int = 0
    fresh: int = 0
    """Parameters with a gradient from backward passes since the last step or clearing."""
    mixed: int = 0
    """Parameters with a gradient that an earlier step had used and a backward then added to."""
    reused: int = 0
    """Parameters with the unchanged gradient that an earlier step had used: no backward since."""
    cleared: int = 0
    """Parameters with a gradient that a backward computed since the last step and that was cleared before this step."""
    absent_grad: int = 0
    """Parameters without a gradient (and no backward has computed one since the last step)."""
    by_hand: int = 0
    """Parameters with a gradient assigned by the user, not computed by a backward."""
    closure: bool = False
    scaler: bool = False
    """Whether GradScaler.step made the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandStepped(Event):
    """Parameters have moved outside any optimizer since the last backward (an update by hand)."""

    absent: ClassVar[str] = "no update by hand"
    site: Site | None = None
    """Line of the backward at which this was detected."""
    moved: int = 0
    """1: parameters have moved."""
    mixed: int = 0
    """1 if a gradient that an earlier update had used was added to by a backward, else 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureMeasured(Event):
    """At a sampled step on mixed gradients: norm of the gradient, divided by the norm that the last backward added."""

    absent: ClassVar[str] = "no mixed gradients"
    optimizer: int
    ratio: float
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowMeasured(Event):
    """At a sampled step after several backwards: norm of the gradient, divided by the mean norm each backward added."""

    absent: ClassVar[str] = "no accumulation"
    optimizer: int
    ratio: float
    backwards: int = 0
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParametersUnchanged(Event):
    """At a sampled step: trainable parameters that have kept their values since they were first observed."""

    absent: ClassVar[str] = "fewer than 10 optimizer steps"
    costly: ClassVar[bool] = True
    parameters: tuple[int, ...]
    steps: int
    """Number of optimizer steps since then."""
    moved: tuple[int, ...] = ()
    """Parameters with other values than when they were first observed, trainable or not."""
    frozen: tuple[int, ...] = ()
    """Parameters that require no gradient."""
    random: tuple[int, ...] = ()
    """Weights that have kept the random values that torch's layers begin with."""
    zero: tuple[int, ...] = ()
    """Parameters of optimizers that had only gradients of zeros in sampled steps, and moved by weight decay at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopyUnchanged(Event):
    """At a sampled step: a model outside optimizers has kept its values, unlike a trained one with the same shapes."""

    absent: ClassVar[str] = "no second model with the shapes of a trained one"
    model: int
    path: str = ""
    """The module inside of the model, such as "encoder"; empty for the model itself."""
    source: int
    """The trained model."""
    source_path: str = ""
    parameters: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    """Variables of the main program that hold it."""
    equal: bool = False
    """Whether it began with the values of the trained model."""
    initial: bool = False
    """Whether these were the random values that torch's layers begin with."""
    inside: bool = False
    """Whether both are parts of one model."""
    average: bool = False
    """Whether it is an AveragedModel of torch."""
    written: bool = False
    """Whether its values were written to, and stayed the same up to rounding."""
    loop: Site | None = None
    """The first loop of the program over pairs of parameters that only assigns its own variables, or does nothing."""
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AverageMeasured(Event):
    """Between two sampled steps: a model outside optimizers became a mixture of its values and a trained model's."""

    absent: ClassVar[str] = "no average that was updated between two sampled steps"
    model: int
    source: int
    """The trained model."""
    take: float
    """Share of the values of the trained model."""
    total: float
    """Sum of both shares."""
    site: Site | None = None
    """The first loop of the program over pairs of parameters."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelAliased(Event):
    """A trained model has two names, of which one says that it stands for another model, or all places of an ensemble.

    Names are read at sampled steps, ensembles when a member is first called in eval mode without gradients.
    """

    absent: ClassVar[str] = "no model with two names"
    model: int
    name: str
    """The variable, or the path in the model, that is named as a teacher, a target, a reference, an average, models."""
    other: str
    times: int = 0
    """Number of places of an ensemble; 0 for a name."""
    whole: bool = True
    """True for a model, False for a module inside of it that ran while gradients were off, in a call with gradients."""
    site: Site | None = None
    """The last assignment to this name."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsEqual(Event):
    """At a sampled step: weights with all rows equal, both when first observed and now."""

    absent: ClassVar[str] = "no weight with equal rows"
    moved: tuple[int, ...] = ()
    """Weights that were trained since: their values changed, other than by a factor."""
    zero: tuple[int, ...] = ()
    """Weights that were and are zero everywhere."""
    constant: tuple[int, ...] = ()
    """Weights that had one value other than zero everywhere when first observed."""
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenStepped(Event):
    """At a sampled step of an optimizer that holds frozen parameters: those that the step changed."""

    absent: ClassVar[str] = "no frozen parameter in an optimizer"
    optimizer: int
    site: Site | None = None
    used: tuple[int, ...] = ()
    """Parameters moved with a gradient that an earlier step had already used."""
    zero: tuple[int, ...] = ()
    """Parameters moved with a gradient of zeros."""
    bare: tuple[int, ...] = ()
    """Parameters moved without a gradient."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateRounded(Event):
    """At a sampled step of a torch optimizer on 16-bit parameters: the part of the update left after rounding."""

    absent: ClassVar[str] = "no 16-bit parameter in an optimizer"
    optimizer: int
    dtype: str
    changed: float
    """Fraction of the observed elements with a gradient that changed; by number or by size of the gradients, whichever
    is larger."""
    lr: float
    """Largest learning rate of the optimizer."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateMeasured(Event):
    """At a sampled step among the first ones of an optimizer: size of the update relative to the weights before."""

    absent: ClassVar[str] = "no update of weights"
    optimizer: int
    ratio: float
    """Norm of the update divided by the norm of the weight, the median of the weights examined, rounded."""
    values: int
    """Number of values of the largest of these weights."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayersMeasured(Event):
    """At a sampled step: size of the gradient and of the update of some weights, for the pictures of the page."""

    absent: ClassVar[str] = "no weights with gradients"
    costly: ClassVar[bool] = True
    optimizer: int
    parameters: tuple[int, ...]
    gradients: tuple[float, ...]
    """Root mean square of the gradient of each weight, before the step; NaN and infinity are kept."""
    updates: tuple[float, ...]
    """Norm of the update of each weight, divided by the norm of the weight before."""
    idle: tuple[float, ...] = ()
    """Share of the rows of each weight, one for each unit, with a gradient of zeros; empty if no row has one."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaceRead(Event):
    """At the end of a run of at least ten seconds: its time and memory at sampled steps. No verdict depends on it."""

    absent: ClassVar[str] = "a short run"
    steps: tuple[int, ...]
    elapsed_s: tuple[float, ...]
    """Seconds since the start of the supervision, without those of close reading and checks."""
    resident_bytes: tuple[int, ...]
    """Resident memory of the process; 0 if unknown."""
    device_bytes: tuple[int, ...]
    """Peak of the memory of tensors on the accelerator; 0 without one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearningRateRead(Event):
    """At a sampled step, and at the end of the run: the learning rates of an optimizer."""

    absent: ClassVar[str] = "no learning rate that is a number"
    optimizer: int
    rates: tuple[float, ...]
    """One for each parameter group, rounded to six digits."""
    site: Site | None = None
    """The only line of the file of the step that assigns a learning rate by the key "lr"; None if there are several."""

    @property
    def zero(self) -> bool:
        """Return True if all are 0."""
        return not any(self.rates)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RateComputed(Event):
    """At a sampled step: a learning rate that the script computes, and that only its log gets."""

    absent: ClassVar[str] = "no learning rate that the script computes"
    optimizer: int
    """The optimizer of the step."""
    name: str
    """The variable or attribute with the rate; "optimizer.lr" and others for one that torch never reads."""
    rate: float
    """Rounded to six digits."""
    site: Site | None = None
    """Line that computes it; None if not found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreezeIgnored(Event):
    """At a sampled step: an attribute marks parameters as frozen, but they are trainable."""

    absent: ClassVar[str] = "no check of the values of parameters"
    model: int
    holder: str
    """Owner of the attribute: path of a module in the model, or name of a parameter."""
    attribute: str
    """"requires_grad" of a module, or a misspelling."""
    parameters: tuple[int, ...] = ()
    site: Site | None = None
    """Line of the assignment, or None if not found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsClipped(Event):
    """``clip_grad_norm_`` or ``clip_grad_value_`` ran."""

    absent: ClassVar[str] = "no gradient clipping"
    repeats: ClassVar[RepeatKind] = "by call"
    kind: str = "norm"
    site: Site | None = None
    given: int = 1
    """Number of parameters passed to it; 0 for an exhausted generator."""
    observed: int = 1
    """Number of these that were observed."""
    max_norm: float = 1.0
    """The limit; infinity if the clip only reads the norm."""
    fresh: int = 0
    """Number of gradients that no step had used yet."""
    used: int = 0
    """Number of gradients that a step had already used, with no backward since."""
    absent_grad: int = 0
    """Number of parameters without a gradient."""
    scaled: bool = False
    """Whether the gradients still carried the scale of a GradScaler."""
    optimizer: int | None = None
    """The optimizer that holds most of the clipped parameters."""
    foreign: int = 0
    """Number of clipped parameters, if all are in no optimizer and have no gradient; else 0."""
    unclipped: int = 0
    """Number of parameters of that optimizer with a fresh gradient that were not passed to the clip."""
    optimizers: tuple[int, ...] = ()
    """All optimizers that hold at least one clipped parameter."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossScaled(Event):
    """``GradScaler.scale`` scaled a loss."""

    absent: ClassVar[str] = "no GradScaler"
    scaler: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsUnscaled(Event):
    """``GradScaler.unscale_`` was called by the user."""

    absent: ClassVar[str] = "no unscale_()"
    scaler: int
    optimizer: int | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerStepped(Event):
    """GradScaler.step was called: an attempt, which skips the optimizer if gradients are not finite."""

    absent: ClassVar[str] = "no GradScaler"
    scaler: int
    optimizer: int | None = None
    skipped: bool = False
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientScaleRead(Event):
    """At a sampled step in a run with a GradScaler: the losses behind the gradients of the step."""

    absent: ClassVar[str] = "no optimizer step in a run with a GradScaler"
    optimizer: int
    site: Site | None = None
    """Line of the step."""
    scaler: bool = True
    """Whether GradScaler.step makes the step."""
    scaled: Site | None = None
    """Line of the backward of a scaled loss with gradients that still carry the scale."""
    plain: Site | None = None
    """Line of the backward of an unscaled loss to gradients that were not unscaled."""
    late: Site | None = None
    """Line of the backward of a scaled loss to gradients that were already unscaled."""
    unscaled: Site | None = None
    """Line of the call of ``unscale_``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerUpdated(Event):
    """``GradScaler.update`` was called."""

    absent: ClassVar[str] = "no GradScaler"
    scaler: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerStepped(Event):
    """A scheduler's ``step`` was called by the user (the outermost one if nested)."""

    absent: ClassVar[str] = "no scheduler step"
    repeats: ClassVar[RepeatKind] = "by value"
    scheduler: int
    site: Site | None = None
    optimizer_steps: int = 0
    """Number of updates (or attempts by a scaler) of its optimizer since the previous scheduler step, at most 2."""
    first: bool = False
    """Whether its optimizer has not stepped yet."""
    epoch_argument: bool = False
    """Whether an epoch was passed (fractional epochs of warm restarts)."""
    metric: str = ""
    """For ReduceLROnPlateau, kind of the metric: "tensor with graph", "tensor", "float", "nan", "count" for whole
    numbers in a row, such as that of the epoch, or "falling" for positive values that nearly all fall, by a fifth."""
    metric_name: str = ""
    """For ReduceLROnPlateau: the expression that is passed, such as "val_loss"."""
    metric_is_training_loss: bool = False
    """For ReduceLROnPlateau: whether the value equals the loss of the latest backward."""
    at_zero: bool = False
    """Whether the learning rates of all groups are 0 after this event."""
    rate: str = ""
    """State of the learning rates of all groups: "negative"; "vanished" (below a millionth of the initial ones, after a
    decay); "warming" (at most a tenth of the initial ones, and never decreased so far); empty for anything else."""
