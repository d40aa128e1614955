"""Values of parameters between steps: unchanged, equal, averaged, rounded; and the sizes of updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeavesGrouped(Event):
    """At a sampled backward: a list or a dict of trainable leaves, of which an optimizer holds some and none others."""

    absent: ClassVar[str] = "no collection of tensors of which an optimizer holds a part"
    parameters: tuple[int, ...]
    """Those of the collection that the loss reaches."""
    names: tuple[str, ...] = ()
    """Place of each, such as "P['bias']"."""
    name: str = ""
    """Variable that holds the collection."""


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
    drawn: tuple[int, ...] = ()
    """Trainable weights of no optimizer that have kept values which look drawn independently from one distribution."""
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
    used: bool = True
    """Whether it was called after steps that it did not follow, not only before them."""
    first: bool = True
    """Whether its values are the first ones: read before the first step, or those that the trained model began with.

    The values of an average that was updated before its first call are others."""
    moved: bool = False
    """Whether it was written to after all, since such an event."""


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
class AverageOfItself(Event):
    """An average of trained tensors consists of these tensors, or of views of them, and is written in place."""

    absent: ClassVar[str] = "no average of tensors in variables"
    name: str
    """The variable with the average."""
    other: str
    """The variable with the trained tensors."""
    tensors: int
    updated: Site | None = None
    """The statement that writes the average."""
    site: Site | None = None
    """The statement that gives it its first value."""


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
class LayersRepeated(Event):
    """A container of a new model holds one layer with parameters in several places."""

    absent: ClassVar[str] = "no container with one layer in several places"
    model: int
    name: str = ""
    """Path of the container in the model; empty for the model itself."""
    kind: str = ""
    """Class of the layer."""
    times: int = 0
    path: str = ""
    """File of the class that holds the container, else the one that calls the model."""
    site: Site | None = None
    """Line that calls the model."""


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
    kept: float = 0.0
    """Fraction of the weights with a gradient that had one at all sampled steps of 100 or more steps, and the same
    value after each; by number or by size of the gradients, whichever is smaller. Zero for gradients without a
    direction, such as those of a trained model."""
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
class ColumnsUnread(Event):
    """At the end, outputs of a linear layer kept their weights: the loss reads others twice, by their place.

    Sent once for each such layer.
    """

    absent: ClassVar[str] = "no output of a layer that is read twice beside one that is not read"
    parameter: int
    """The weight of the layer."""
    unread: tuple[int, ...] = ()
    """Outputs that no loss reads."""
    again: tuple[int, ...] = ()
    """Outputs that the loss selects more than once."""
    outputs: int = 0
    """Number of all outputs of the layer."""
    site: Site | None = None
    """The backward pass."""
