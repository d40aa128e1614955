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
    settings: tuple[tuple[str, float], ...] = ()
    """Its other settings at this step, as in `OptimizerBuilt`."""
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
class FactorsFollowed(Event):
    """When observation ends: the factors of a LambdaLR from its first position on, up to one that exceeds its rate."""

    absent: ClassVar[str] = "no step of a LambdaLR"
    scheduler: int
    optimizer: int
    base: float
    """The largest learning rate that the factors multiply."""
    largest: float
    last: float
    steps: int
    """Number of steps, all by one position."""
    since: int
    """Number of steps since the largest factor was first reached."""
    values: int
    """Number of factors that differ from the one before, at most 4."""
    site: Site | None = None
    """Line of the constructor."""


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
    jump: tuple[float, ...] = ()
    """A learning rate before and after its first step, if that changes one that was set or loaded since it was built,
    by half or more."""
    rate: str = ""
    """State of the learning rates of all groups: "negative"; "vanished" (below a millionth of the initial ones, after a
    decay); "warming" (at most a tenth of the initial ones, and never decreased so far); empty for anything else."""
