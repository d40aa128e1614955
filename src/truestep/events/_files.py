"""Checkpoints and states, saved and loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, RepeatKind, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointSaved(Event):
    """``torch.save`` wrote an object."""

    absent: ClassVar[str] = "no checkpoint"
    site: Site | None = None
    holds: tuple[str, ...] = ()
    """Top-level keys or the kind of the object."""
    whole_model: bool = False
    path: str = ""
    """Absolute path of the file; empty for other targets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointLoaded(Event):
    """``torch.load`` read an object."""

    absent: ClassVar[str] = "no checkpoint loaded"
    site: Site | None = None
    optimizers: int = 0
    """Number of states of optimizers with moments in it."""
    schedules: int = 0
    """Number of states of schedules in it."""
    resumes: bool = False
    """Whether the code assigns the epoch or the step in it: the training goes on from there."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelExported(Event):
    """A model was exported, and the exported program was saved."""

    absent: ClassVar[str] = "no exported program saved"
    site: Site | None = None
    """The call that exports."""
    saved: Site | None = None
    """The call that saves."""
    by: str
    """"torch.export.export" or "torch.jit.trace"."""
    name: str = "model"
    """The user's name of the model."""
    training: bool = False
    """Whether the model was in train mode."""
    layers: int = 0
    """Number of layers with dropout or batch normalisation that acted as in training, in a model in train mode."""
    layer: str = ""
    """Name of the first of them in the model; empty for the model itself."""
    kind: str = ""
    """Class of this layer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateTaken(Event):
    """``state_dict()`` of a module, an optimizer or a schedule was called by the user."""

    absent: ClassVar[str] = "no call of state_dict"
    repeats: ClassVar[RepeatKind] = "by value"
    site: Site | None = None
    owner: str = "model"
    """The user's name of the object."""
    kind: str = "module"
    """"module", "optimizer" or "schedule"."""
    dropped: bool = False
    """Whether the line discards the result."""
    into: str = ""
    """The dict that was passed to be filled, if it held tensors by these names before."""
    kept: str = ""
    """The variable that gets the result, if no code reads it."""
    trained: bool = False
    """Whether an optimizer has stepped before."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightsKept(Event):
    """A state dict of a module was taken in a branch for a new best figure, such as a loss or an accuracy."""

    absent: ClassVar[str] = "no weights kept in a branch that compares a figure with the best one"
    name: str
    """The variable that is compared with the best value."""
    loss: bool
    """Whether it has the name of a loss."""
    share: bool = False
    """Whether it has the name of an accuracy."""
    greater: bool
    """Whether greater values are the best ones."""
    value: float
    best: str = ""
    """The variable with the best value."""
    beside: str = ""
    """Another variable with the same figure of a validation, if that of the training is compared."""
    site: Site | None = None
    """The comparison."""
    taken: Site | None = None
    """The call of ``state_dict``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptTensorsChanged(Event):
    """Tensors that a branch for a new best figure kept were changed by training, while the best figure stayed."""

    absent: ClassVar[str] = "no tensors of a training kept in a branch that compares a figure with the best one"
    name: str
    """The variable that keeps them."""
    best: str
    """The variable with the best figure."""
    value: float
    """This figure."""
    tensors: int
    """Number of tensors that changed."""
    read: Site | None = None
    """A place that reads the variable."""
    site: Site | None = None
    """The statement that keeps them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizerLoaded(Event):
    """An optimizer loaded a state with moments of its parameters."""

    absent: ClassVar[str] = "no load_state_dict of an optimizer"
    optimizer: int
    name: str = "optimizer"
    initial: bool = False
    """Whether the weights that it holds have random values as at their initialisation."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduleMoved(Event):
    """A schedule got a position without its steps: from a state that it loaded, or by hand."""

    absent: ClassVar[str] = "no load_state_dict of a schedule"
    scheduler: int
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StateLoaded(Event):
    """A module loaded a state dict."""

    absent: ClassVar[str] = "no load_state_dict"
    site: Site | None = None
    model: int | None = None
    missing: int = 0
    unexpected: int = 0
    module: int = 0
    """Number of the module, also if it was never called."""
    parameters: tuple[int, ...] = ()
    """Parameters of the module that were loaded."""
    unread: bool = False
    """Whether the load was not strict and the user's line discards its result. The fields down to ``found`` are set
    only in this case."""
    state: int = 0
    """Number of the state dict, the same for a copy of the dict."""
    offered: int = 0
    """Number of tensors in the state dict."""
    matched: int = 0
    """Number of parameters of the module that were loaded."""
    dropped: int = 0
    """Number of parameters of the module that were not loaded."""
    added: str = ""
    """Prefix or part in the names of the state dict that the names of the missing parameters lack."""
    lacking: str = ""
    """Prefix of the names of the missing parameters that the names of the state dict lack."""
    inner: str = ""
    """Key of an inner dict that has the missing parameters."""
    found: int = 0
    """Number of missing parameters that the state dict has, in their shapes, after this correction of the names."""
    taken: Site | None = None
    """Line that called `state_dict()`, if all its tensors are the module's own and have changed since that call."""
    taken_steps: int = 0
    """Number of optimizer steps between that call (or the latest load of the dict) and this load, rounded to one
    significant digit."""
    overwritten: bool = False
    """Whether the module loaded other weights between the two."""
