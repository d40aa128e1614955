"""From a gradient to the next: cleared, clipped, scaled, stepped on, and the schedule after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsZeroed(Event):
    """``zero_grad()`` of an optimizer or a module was called by the user."""

    absent: ClassVar[str] = "no call of zero_grad"
    site: Site | None = None
    optimizer: int | None = None
    model: int | None = None
    fresh: int = 0
    """Observed gradients that a backward had made and no step had used yet, and that this call cleared."""
    used: int = 0
    """Observed gradients that a step had used, cleared by this call."""
    observed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerStepped(Event):
    """An optimizer stepped (the outermost ``step`` where they nest). Counts are over the parameters looked at."""

    absent: ClassVar[str] = "no optimizer step"
    optimizer: int
    site: Site | None = None
    observed: int = 0
    fresh: int = 0
    """Gradient made by backward passes since the last step or clearing."""
    mixed: int = 0
    """Gradient made by a backward that added to one an earlier step had used."""
    reused: int = 0
    """The very gradient an earlier step had used, unchanged: no backward since."""
    cleared: int = 0
    """A backward had made a gradient since the last step, and it was cleared before this step."""
    absent_grad: int = 0
    """No gradient at all (and none was made since the last step)."""
    by_hand: int = 0
    """A gradient that no backward made: assigned by the user."""
    closure: bool = False
    scaler: bool = False
    """Whether GradScaler.step made the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HandStepped(Event):
    """Parameters were seen to have moved outside any optimizer since the last backward (an update by hand)."""

    absent: ClassVar[str] = "no update by hand"
    site: Site | None = None
    """The backward at which it was noticed."""
    moved: int = 0
    mixed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MixtureMeasured(Event):
    """At a sampled step on mixed gradients: the norm stepped on, over the norm of what the last backward added."""

    absent: ClassVar[str] = "no mixed gradients"
    optimizer: int
    ratio: float
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowMeasured(Event):
    """At a sampled step after several backwards: norm stepped on over the mean norm of what each backward added."""

    absent: ClassVar[str] = "no accumulation"
    optimizer: int
    ratio: float
    backwards: int = 0
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParametersUnchanged(Event):
    """At a sampled step: these trainable parameters have kept their values since they were first seen."""

    absent: ClassVar[str] = "fewer than 10 optimizer steps"
    parameters: tuple[int, ...]
    steps: int
    """Over how many optimizer steps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsEqual(Event):
    """At a sampled step: of the weights whose rows were all equal when first looked at, those where they still are."""

    absent: ClassVar[str] = "no weight with equal rows"
    moved: tuple[int, ...] = ()
    """Those that were trained since: their values changed, other than by a factor."""
    zero: tuple[int, ...] = ()
    """Those that were and are zero everywhere."""
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrozenStepped(Event):
    """At a sampled step of an optimizer that holds frozen parameters: those whose values changed within the step."""

    absent: ClassVar[str] = "no frozen parameter in an optimizer"
    optimizer: int
    site: Site | None = None
    used: tuple[int, ...] = ()
    """Those moved with a gradient that an earlier step had already used."""
    zero: tuple[int, ...] = ()
    """Those moved with a gradient of zeros."""
    bare: tuple[int, ...] = ()
    """Those moved without a gradient."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UpdateRounded(Event):
    """At a sampled step on parameters of 16 bits, by an optimizer of torch: how much of the update was left."""

    absent: ClassVar[str] = "no parameter of 16 bits in an optimizer"
    optimizer: int
    dtype: str
    changed: float
    """Of the elements looked at that had a gradient, the part whose value changed; by their number or by the size of
    their gradients, whichever is more."""
    lr: float
    """The largest of its learning rates."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LearningRateRead(Event):
    """At a sampled step where all learning rates of an optimizer are 0, or were at the look before."""

    absent: ClassVar[str] = "no learning rate of 0"
    optimizer: int
    zero: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FreezeIgnored(Event):
    """At a sampled step: an attribute says frozen, and the parameters are trainable all the same."""

    absent: ClassVar[str] = "no check of the values of parameters"
    model: int
    holder: str
    """What has the attribute: the path of a module in the model, or the name of a parameter."""
    attribute: str
    """"requires_grad" of a module, or a misspelling."""
    parameters: tuple[int, ...] = ()
    site: Site | None = None
    """The assignment, where it was found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsClipped(Event):
    """``clip_grad_norm_`` or ``clip_grad_value_`` ran."""

    absent: ClassVar[str] = "no gradient clipping"
    kind: str = "norm"
    site: Site | None = None
    given: int = 1
    """How many parameters were given to it; 0 for an exhausted generator."""
    observed: int = 1
    """How many of these were looked at."""
    max_norm: float = 1.0
    """The limit asked for; infinity when only the norm was wanted."""
    fresh: int = 0
    used: int = 0
    """Gradients that a step had already used, no backward since."""
    absent_grad: int = 0
    scaled: bool = False
    """Whether the gradients still carried the scale of a GradScaler."""
    optimizer: int | None = None
    """The optimizer that owns most of the clipped parameters."""
    foreign: int = 0
    """Clipped parameters that no optimizer holds and that have no gradient, where all of them are such."""
    unclipped: int = 0
    """Parameters of that optimizer with a fresh gradient that were not given to the clip."""
    optimizers: tuple[int, ...] = ()
    """All optimizers that hold at least one clipped parameter."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossScaled(Event):
    absent: ClassVar[str] = "no GradScaler"
    scaler: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsUnscaled(Event):
    absent: ClassVar[str] = "no unscale_()"
    scaler: int
    optimizer: int | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerStepped(Event):
    """GradScaler.step was called: an attempt, which skips the optimizer when gradients are not finite."""

    absent: ClassVar[str] = "no GradScaler"
    scaler: int
    optimizer: int | None = None
    skipped: bool = False
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientScaleRead(Event):
    """At a sampled step, where a GradScaler is in use: the losses behind the gradients about to be stepped on."""

    absent: ClassVar[str] = "no optimizer step beside a GradScaler"
    optimizer: int
    site: Site | None = None
    """The step."""
    scaler: bool = True
    """Whether GradScaler.step makes it."""
    scaled: Site | None = None
    """The backward of a scaled loss whose gradients still carry the scale."""
    plain: Site | None = None
    """The backward of a loss that was not scaled, to gradients that were not unscaled."""
    late: Site | None = None
    """The backward of a scaled loss to gradients that were unscaled before."""
    unscaled: Site | None = None
    """The call of ``unscale_``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerUpdated(Event):
    absent: ClassVar[str] = "no GradScaler"
    scaler: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerStepped(Event):
    """A scheduler's ``step`` was called by the user (the outermost one where they nest)."""

    absent: ClassVar[str] = "no scheduler step"
    scheduler: int
    site: Site | None = None
    optimizer_steps: int = 0
    """Updates (or attempts by a scaler) of its optimizer since this scheduler's previous step: 0, 1, or 2 for more."""
    first: bool = False
    """Whether its optimizer had not stepped at all yet."""
    epoch_argument: bool = False
    """Whether an epoch was given (fractional epochs of warm restarts)."""
    metric: str = ""
    """For ReduceLROnPlateau: "tensor with graph", "tensor", "float", "nan"."""
    metric_is_training_loss: bool = False
    """For ReduceLROnPlateau: whether the value equals the loss of the latest backward."""
    at_zero: bool = False
    """Whether the learning rates of all groups are 0 from here on."""
    rate: str = ""
    """Where the learning rates of all groups stand: "negative"; "vanished" (below a millionth of the first, after
    a decay); "warming" (at most a tenth of the first, having only ever grown); empty for anything else."""
