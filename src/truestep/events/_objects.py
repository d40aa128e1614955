"""The start and end of a run, and the objects behind the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunStarted(Event):
    """Watching began: the script, versions and rank."""

    script: str
    python: str = ""
    torch: str = ""
    rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunEnded(Event):
    """The end of watching. Rules about whole runs report only if ``how`` is "finished"."""

    how: str
    """"finished", "exited" (sys.exit), "crashed", "interrupted", "stopped" (by --steps or --stop-on), or
    "unfinished" for a record without an end: the run was killed, or goes on."""
    given_up: str = ""
    """Reason for giving up close reading before the end; "" if it was not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProcessStarted(Event):
    """The program started a process by multiprocessing that is not supervised; workers of loaders do not count."""

    absent: ClassVar[str] = "no other process"
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seeded(Event):
    """``torch.manual_seed`` was called."""

    absent: ClassVar[str] = "no call of torch.manual_seed"
    seed: int = 0
    """Index of the seed among the first eight that this line has set; -1 for others."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shuffled(Event):
    """A tensor, or an array with several dimensions, was shuffled in place by a function that exchanges elements."""

    absent: ClassVar[str] = "no tensor or array that `random.shuffle` was called on"
    by: str = "random.shuffle"
    """The function: "random.shuffle" or "numpy.random.shuffle"."""
    kind: str = "tensor"
    """"tensor", or "array" of NumPy."""
    rows: int = 0
    before: int = 0
    after: int = 0
    """Numbers of rows that differ from each other, before and after the call."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawsRepeated(Event):
    """Before a backward pass, the generator had made numbers since a seed that its line had set before."""

    absent: ClassVar[str] = "no seed that was set again"
    site: Site | None = None
    """Line of the seed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParameterMet(Event):
    """A parameter was first seen, or got the name by which a model registers it."""

    parameter: int
    name: str
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    trainable: bool = True
    model: int | None = None
    """The model that registers it; None for a tensor outside of any model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelMet(Event):
    """A module was called from user code for the first time, or its set of parameters changed."""

    absent: ClassVar[str] = "no model call"
    model: int
    name: str = "model"
    kind: str = "Module"
    parameters: tuple[int, ...] = ()
    installed: bool = False
    """Whether a part of it belongs to an installed library other than torch, which may have loaded its weights."""
    sensitive: tuple[str, ...] = ()
    """Kinds of its layers that depend on train/eval mode, such as "Dropout" or "BatchNorm1d"."""
    fresh: tuple[int, ...] = ()
    """Weights with values of an initialisation, of a model that is first called after ten steps."""
    freeze: Site | None = None
    """The only line of the program that freezes parameters, if some of the model's are frozen."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionMet(Event):
    """A function of the program was found to be a model: it takes samples and weights that are plain tensors."""

    absent: ClassVar[str] = "no function that is a model"
    model: int
    """Its number, among those of modules."""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerBuilt(Event):
    """An optimizer was constructed, or stepped without an earlier event (``site`` is then None)."""

    absent: ClassVar[str] = "no optimizer"
    optimizer: int
    name: str = "optimizer"
    kind: str = "SGD"
    parameters: tuple[int, ...] = ()
    lr: float = 0.0
    weight_decay: float = 0.0
    scale_free: bool = False
    """Whether its update does not depend on the size of the gradients (Adam and similar optimizers)."""
    remembers: bool = False
    """Whether its update depends on earlier gradients: momentum, moments."""
    maximizes: bool = False
    """Whether it was built with ``maximize=True``."""
    replaces: int | None = None
    """The optimizer that the same lines built before over the same parameters, if these have kept their values since
    its last step."""
    one_pass: bool = False
    """Whether it replaces one in a loop in which each makes the steps of one pass over slices of the data."""
    settings: tuple[tuple[str, float], ...] = ()
    """For an optimizer of torch: its "momentum", "beta1" and "beta2", and "alpha" of RMSprop, as far as it has them."""
    decay_of_vectors: float = 0.0
    """Least weight decay of its biases and other parameters of one dimension, if matrices have none; 0 otherwise."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldContinued(Event):
    """At the first step of an optimizer, built in a loop over folds: its weights are those of an earlier fold."""

    absent: ClassVar[str] = "no optimizer that a loop over folds builds"
    optimizer: int
    site: Site | None = None
    """Line of the step."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParametersAdded(Event):
    """``add_param_group`` added parameters to an optimizer."""

    optimizer: int
    parameters: tuple[int, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderMet(Event):
    """A DataLoader was read for the first time."""

    absent: ClassVar[str] = "no DataLoader"
    loader: int
    name: str = "loader"
    dataset: int = 0
    """Number of the dataset object; two loaders over one dataset share it."""
    dataset_kind: str = "Dataset"
    batch_size: int | None = None
    batches: int | None = None
    """len(loader); None if it has no length."""
    shuffled: bool = False
    sampler: str = ""
    """"sequential" or "random" for torch's own order over the whole dataset, each sample once; "own" for any other."""
    iterable: bool = False
    """Whether it reads an IterableDataset."""
    workers: int = 0
    parts: int = 1
    """Number of parts into which the sampler divides the samples, as a DistributedSampler does for ranks."""
    samples: int | None = None
    """len(dataset); None if it has no length."""
    content: str = ""
    """With several ranks: equal for data sets that store the same values; empty if the values cannot be read."""
    weights: tuple[int, int] = (0, 0)
    """Number of weights of a WeightedRandomSampler, and of its draws in a pass; zeros for other samplers."""
    counts: tuple[int, int] = (0, 0)
    """Samples of the most and of the least frequent class, if these weights are in proportion to the counts."""
    site: Site | None = None
    """Line that created it; if unknown, line that first read it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SchedulerBuilt(Event):
    """A learning rate scheduler was constructed, or stepped without an earlier event."""

    absent: ClassVar[str] = "no scheduler"
    scheduler: int
    name: str = "scheduler"
    kind: str = "StepLR"
    optimizer: int | None = None
    horizon: int | None = None
    """Length of the schedule in scheduler steps (T_max, total_steps, last milestone); None if it has none."""
    counts: tuple[int, ...] = ()
    """Whole numbers in variables that the functions of a LambdaLR read."""
    tail: str = ""
    """Kind of the last schedule of a SequentialLR, or of the cosine in a ChainedScheduler."""
    tail_horizon: int | None = None
    """Length of the schedule in ``tail``."""
    periodic: bool = False
    """Whether it repeats by design (warm restarts, cyclic)."""
    mode: str = ""
    """ReduceLROnPlateau's "min" or "max"."""
    patience: int | None = None
    step_size: int | None = None
    gamma: float | None = None
    falls: bool = False
    """Whether it has milestones or is linear, and ends with a lower learning rate than at its start."""
    at_zero: bool = False
    """Whether the learning rates of all groups are 0 after this event."""
    of_epochs: bool = False
    """Whether the source gives its length by the name of a variable that counts epochs."""
    called: bool = True
    """Whether its file may call ``step()`` of a variable by its name."""
    asked_steps: tuple[int, ...] = ()
    """Numbers of scheduler steps at which the learning rate that it was asked for is known."""
    asked_rates: tuple[float, ...] = ()
    """The learning rate of the first parameter group after each of these, if all goes as configured."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalerBuilt(Event):
    """An enabled GradScaler was used for the first time."""

    absent: ClassVar[str] = "no GradScaler"
    scaler: int
    enabled: bool = True
    scale: float = 0.0
    """Initial scale."""
    site: Site | None = None
