"""What was seen, and where: the vocabulary between probes and rules.

An event is a past-tense fact about one moment of a training run. Events hold numbers, words and sites, never a
tensor, a module or an optimizer: a recorded stream of them replays to the same findings without torch. Objects are
named by small numbers that the probes give out once ("model 1", "optimizer 2", "parameter 7"); the ``*Met`` and
``*Built`` events say what a number stands for.

Events carry no step number and no time: the stream they stand in does (see `truestep.rules.Progress`). Two equal
moments of two steps are the same object, which is what makes a long run cheap to watch and small to record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a user's file: the whole expression that was running, as the traceback would underline it.

    Lines count from 1, columns from 0 (as `ast` does). ``column`` and ``end_column`` are -1 where unknown.
    """

    path: str
    line: int
    column: int = -1
    end_line: int = -1
    end_column: int = -1
    function: str = "<module>"

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}"
        return place if self.column < 0 else f"{place}:{self.column + 1}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """The root of all events. Compared by identity: the watching session interns equal ones."""

    absent: ClassVar[str] = "not seen"
    """What a report says about a run without any event of this kind."""


# --- the run -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunStarted(Event):
    script: str
    python: str = ""
    torch: str = ""
    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunEnded(Event):
    """The end of watching. Rules about whole runs speak only when ``how`` is "finished"."""

    how: str
    """"finished", "exited" (sys.exit), "crashed", "interrupted" or "stopped" (by --steps or --stop-on)."""


# --- what the numbers stand for ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParameterMet(Event):
    parameter: int
    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    trainable: bool = True
    model: int | None = None
    """The model that registers it, None for a tensor that no model holds."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelMet(Event):
    """A module was called from user code for the first time, or its set of parameters changed."""

    absent: ClassVar[str] = "no model call"
    model: int
    name: str = "model"
    kind: str = "Module"
    parameters: tuple[int, ...] = ()
    sensitive: tuple[str, ...] = ()
    """Kinds of its layers whose result depends on train/eval mode, such as "Dropout" or "BatchNorm1d"."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerBuilt(Event):
    absent: ClassVar[str] = "no optimizer"
    optimizer: int
    name: str = "optimizer"
    kind: str = "SGD"
    parameters: tuple[int, ...] = ()
    lr: float = 0.0
    weight_decay: float = 0.0
    scale_free: bool = False
    """Whether the size of the gradients does not matter to its update (Adam and its kin)."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParametersAdded(Event):
    optimizer: int
    parameters: tuple[int, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderMet(Event):
    absent: ClassVar[str] = "no DataLoader"
    loader: int
    name: str = "loader"
    dataset: int = 0
    """Number of the dataset object; two loaders over one dataset share it."""
    dataset_kind: str = "Dataset"
    batch_size: int | None = None
    batches: int | None = None
    """len(loader), None where it has none."""
    shuffled: bool = False
    workers: int = 0
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerBuilt(Event):
    absent: ClassVar[str] = "no scheduler"
    scheduler: int
    name: str = "scheduler"
    kind: str = "StepLR"
    optimizer: int | None = None
    horizon: int | None = None
    """How many of its own steps the schedule is made for (T_max, total_steps, last milestone), where it says so."""
    tail: str = ""
    """Kind of the last schedule of a SequentialLR."""
    tail_horizon: int | None = None
    """How many steps that one is made for."""
    periodic: bool = False
    """Whether it is meant to go round again (warm restarts, cyclic)."""
    mode: str = ""
    """ReduceLROnPlateau's "min" or "max"."""
    patience: int | None = None
    step_size: int | None = None
    gamma: float | None = None
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerBuilt(Event):
    absent: ClassVar[str] = "no GradScaler"
    scaler: int
    enabled: bool = True
    scale: float = 0.0
    """The scale it begins with."""
    site: Site | None = None


# --- data ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderStarted(Event):
    absent: ClassVar[str] = "no DataLoader"
    loader: int
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchDrawn(Event):
    absent: ClassVar[str] = "no DataLoader"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderEnded(Event):
    """The loader gave its last batch (a loop left by ``break`` has no such event)."""

    absent: ClassVar[str] = "no DataLoader read to its end"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchesAwaited(Event):
    """Told once, when watching ends: how long the run waited for batches of all its DataLoaders together."""

    absent: ClassVar[str] = "no DataLoader"
    waited_s: float
    watched_s: float
    """How long the run was watched."""


# --- the model -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModeSet(Event):
    """``model.train()`` or ``model.eval()`` was called by the user on this module."""

    absent: ClassVar[str] = "no call of train() or eval()"
    model: int | None
    """None for a module that was never called as a model (a submodule, or one not met yet)."""
    training: bool
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelCalled(Event):
    """A module was called from user code, outside any other module, any backward and any DataLoader."""

    absent: ClassVar[str] = "no model call"
    model: int
    site: Site | None = None
    training: bool = True
    """The root module's own mode."""
    sensitive: tuple[str, ...] = ()
    """Kinds of mode-sensitive layers that were in train mode during this call."""
    frozen_sensitive: bool = False
    """Whether some mode-sensitive layers were in eval mode during this call."""
    grad: bool = True
    """Whether gradients were on."""
    tracked: bool = True
    """Whether the result requires grad."""
    discarded: bool = False
    """Whether the caller dropped the result at once (a bare ``model(x)`` statement, as in update_bn)."""
    same_input: bool = False
    """Whether the first argument is the very object of the previous call of this model (MC dropout)."""
    loader: int | None = None
    """The loader that gave the latest batch, None when the last loop over a loader has ended."""
    compiled: bool = False
    autocast: bool = False
    """Whether autocast was on for the model's device."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardCalledDirectly(Event):
    """User code ran ``module.forward(...)`` instead of ``module(...)``; hooks of that module did not run."""

    absent: ClassVar[str] = "no model call"
    kind: str
    name: str = "model"
    hooks: int = 0
    """How many hooks of the module (and global ones of the user) were skipped."""
    hook_names: tuple[str, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnregisteredModuleCalled(Event):
    """Inside a model's forward, a module with trainable parameters ran that the model does not register."""

    absent: ClassVar[str] = "no model call"
    model: int
    kind: str = "Linear"
    name: str = ""
    """Where the model holds it, such as "layers[0]" for a plain list attribute; empty when not found."""
    parameters: tuple[int, ...] = ()
    fresh: bool = False
    """Whether it was created during this very forward call."""
    site: Site | None = None
    """The line in forward that calls it."""


# --- loss, backward ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossComputed(Event):
    """One of torch's loss functions was called (as a module or as a function)."""

    absent: ClassVar[str] = "no loss function of torch"
    kind: str
    """"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"..."""
    site: Site | None = None
    input_rank: int = 0
    target_rank: int = 0
    classes: int = 0
    """Size of the class dimension of the input (dimension 1, or 0 for a single sample)."""
    input_from: str = ""
    """Name of the operation that made the input, such as "SoftmaxBackward0"; empty when it tracks no gradient."""
    softmax_dim: int | None = None
    """The dimension of that softmax, counted from the end (-1 is the last), where input_from is one."""
    sums_to_one: bool | None = None
    """Whether rows of the input were seen to be non-negative and to sum to one; None when not looked at."""
    broadcast: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Shapes of input and target where they differ and broadcast to something larger than both."""
    reduction: str = "mean"
    grad: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardEnded(Event):
    """``loss.backward()`` or ``torch.autograd.backward`` ran (``torch.autograd.grad`` is `GradientsTaken`)."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    root: str = ""
    """Kind of the operation that made the loss, such as "NllLossBackward0"; "leaf" for a tensor without a history."""
    divided: bool = False
    """Whether the loss was scaled on its way (a division or multiplication by a number, a gradient argument)."""
    retained: bool = False
    observed: int = 0
    """How many parameters were looked at before and after."""
    onto_used: int = 0
    """Of these, how many had a gradient that a step had already used, and that this backward added to."""
    onto_fresh: int = 0
    """Of these, how many had an unused gradient that this backward added to (accumulation)."""
    written: int = 0
    """Of these, how many received a gradient at all."""
    in_step: bool = False
    """Whether it ran inside optimizer.step (a closure)."""
    scaled: bool = False
    """Whether the loss was scaled by a GradScaler."""
    loader: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsTaken(Event):
    """``torch.autograd.grad`` ran: gradients returned, none accumulated."""

    absent: ClassVar[str] = "no call of autograd.grad"
    site: Site | None = None
    create_graph: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TapeRead(Event):
    """At a sampled backward, the autograd tape was walked (before the engine ran)."""

    absent: ClassVar[str] = "no readable autograd tape"
    site: Site | None = None
    nodes: int = 0
    reached: tuple[int, ...] = ()
    """Parameters that the loss reaches."""
    forwarded: tuple[int, ...] = ()
    """Trainable parameters owned by modules that ran in the forward calls since the last step, with gradients on."""
    depths: tuple[int, ...] = ()
    """Beside ``reached``: how many operations lie between the loss and the parameter, at least."""
    opaque: bool = False
    """Whether compiled regions or custom functions hide part of the tape."""
    leaf_root: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BroadcastOnTape(Event):
    """On the tape, between loss and prediction, a (N, 1) met a (N,) and became (N, N), in a hand-written loss."""

    absent: ClassVar[str] = "no readable autograd tape"
    site: Site | None = None
    shape: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossNotFinite(Event):
    """The tensor that backward started from was NaN or infinite."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    value: str = "nan"
    parameters_finite: bool = True
    """Whether all parameters the model holds were finite at that moment."""
    first_parameter: str = ""
    """The first parameter (by registration) that was not finite."""
    operations: tuple[str, ...] = ()
    """Operations on the tape near the loss that can make such a value ("LogBackward0", "DivBackward0", ...)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsRepaired(Event):
    """At a step after a backward from a loss that was not finite: all gradients were finite all the same."""

    absent: ClassVar[str] = "no loss that is not finite"
    optimizer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsKept(Event):
    """Graphs of past steps were still alive, and their number grew with the steps."""

    absent: ClassVar[str] = "fewer than 24 backward passes"
    alive: int
    of: int
    """How many past graphs were marked."""
    nodes: int = 0
    """Operations in one such graph."""
    kept_bytes: int = 0
    """What one kept graph holds, measured or counted from the sizes on its tape; 0 when unknown."""
    name: str = ""
    """The variable that keeps them, such as "losses"; empty when not found."""
    backward_ran: bool = True
    site: Site | None = None


# --- gradients and steps -------------------------------------------------------------------------------------------


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


# --- GradScaler, schedulers, files ---------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointSaved(Event):
    absent: ClassVar[str] = "no checkpoint"
    site: Site | None = None
    holds: tuple[str, ...] = ()
    """Top-level keys or the kind of the object."""
    whole_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointLoaded(Event):
    absent: ClassVar[str] = "no checkpoint loaded"
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateLoaded(Event):
    absent: ClassVar[str] = "no load_state_dict"
    site: Site | None = None
    model: int | None = None
    missing: int = 0
    unexpected: int = 0
