"""Calls of models and layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, RepeatKind, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModeSet(Event):
    """``model.train()`` or ``model.eval()`` was called by the user on this module."""

    absent: ClassVar[str] = "no call of train() or eval()"
    repeats: ClassVar[RepeatKind] = "by value"
    model: int | None
    """None for a module that was never called as a model (a submodule, or a module not yet called)."""
    training: bool
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelCalled(Event):
    """A module was called from user code, outside any other module, any backward and any DataLoader."""

    absent: ClassVar[str] = "no model call"
    repeats: ClassVar[RepeatKind] = "by value"
    model: int
    site: Site | None = None
    training: bool = True
    """Mode of the root module."""
    sensitive: tuple[str, ...] = ()
    """Kinds of mode-sensitive layers that were in train mode during this call; for a call without gradients also
    "F.dropout", if a function applied dropout."""
    frozen_sensitive: bool = False
    """Whether some mode-sensitive layers were in eval mode during this call."""
    grad: bool = True
    """Whether gradients were on."""
    tracked: bool = True
    """Whether the result requires grad."""
    discarded: bool = False
    """Whether the caller dropped the result at once (a bare ``model(x)`` statement, as in update_bn)."""
    same_input: bool = False
    """Whether the first argument is the same object as in the previous call of this model (MC dropout)."""
    known_input: bool = False
    """Whether the first argument shares its memory with that of an earlier call in train mode without gradients, with
    an update in between; only for such calls of a model with layers that depend on the mode."""
    loader: int | None = None
    """Loader of the latest batch; None after the last loop over a loader has ended."""
    compiled: bool = False
    autocast: bool = False
    """Whether autocast was on for the model's device."""
    use: str = ""
    """Use of the result in the source of its function: "compared" (with targets), "loss" (a loss of it is read as a
    number), "read" (as a number); empty for all other uses."""
    only_read: bool = False
    """Whether the result has no other use, so that no backward pass can follow."""
    dropout: Site | None = None
    """Line of the forward that applied dropout to values computed by the model although the whole model was in eval
    mode, by a function that does not get the mode; only for calls without gradients."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionCalled(Event):
    """A function that is a model was called: in sampled steps of the training, and without gradients in every step."""

    absent: ClassVar[str] = "no call of a function that is a model"
    repeats: ClassVar[RepeatKind] = "by value"
    model: int
    site: Site | None = None
    grad: bool = True
    """Whether gradients were on."""
    tracked: bool = True
    """Whether the result requires grad."""
    loader: int | None = None
    use: str = ""
    """Use of the result, as in `ModelCalled`."""
    only_read: bool = False
    same_input: bool = False
    """Whether the first sample is the object of the call before."""
    dropout: Site | None = None
    """Line that applied dropout, in a call without gradients that does not say so."""
    sampled: bool = False
    """Whether dropout was applied on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoopRead(Event):
    """The source of the innermost loop around a call of a model was read."""

    absent: ClassVar[str] = "no model call in a loop"
    model: int
    name: str = ""
    """Variable that is not the sum of the loop: overwritten in each pass, or never set to zero; else empty."""
    use: str = ""
    """Its use behind the loop: "divided", "divisor", "differentiated" or "read", if overwritten; "kept" if it grows."""
    trains: bool = False
    """Whether the loop has a backward pass."""
    place: Site | None = None
    """Line that overwrites it."""
    site: Site | None = None
    """Line that calls the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputsRead(Event):
    """Values of an argument of a model on the CPU, at sampled steps and in first calls without gradients.

    It is the first argument; after one of whole numbers also the next one of numbers with decimals. First calls in eval
    mode with a result that is only measured are read with gradients on, too.
    """

    absent: ClassVar[str] = "no model call on a tensor on the CPU"
    model: int
    training: bool = True
    """Whether gradients were on and the model was in train mode."""
    mean: float = 0.0
    spread: float = 0.0
    """Standard deviation; all figures are of sampled elements, rounded to three digits."""
    least: float = 0.0
    most: float = 0.0
    dtype: str = "float32"
    floating: bool = True
    shape: tuple[int, ...] = ()
    argument: str = ""
    """Name of a later argument in `forward`; empty for the first."""
    loader: int | None = None
    """Loader of the latest batch; None after the last loop over a loader has ended."""
    given: str = ""
    """Variable that is the first argument, such as "x_test"; "*" for an element of the loop around the call."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelsRead(Event):
    """Levels of the first argument of a model, of numbers with decimals, where `InputsRead` reads it.

    Values that were measured in steps, as those of pixels, keep equal distances when they are scaled.
    """

    absent: ClassVar[str] = "no model call on numbers with decimals on the CPU"
    model: int
    training: bool = True
    """Whether gradients were on and the model was in train mode."""
    part: str = ""
    """"channel 0" or "feature 12"; empty for all values."""
    distance: float = 0.0
    """Distance of neighbouring levels; 0 if the values have no levels."""
    offset: float = 0.0
    """Place of the levels between multiples of their distance: 0 to 1."""
    mean: float = 0.0
    spread: float = 0.0
    """Standard deviation of the part; all figures are of sampled elements, rounded to three digits."""
    even: bool = False
    """Whether the levels are equally frequent, as of points that were chosen."""
    own: str = ""
    """Values with a mean of 0 and a standard deviation of 1: those of each "sample", or of the "batch"."""
    loader: int | None = None
    """Loader of the latest batch; None after the last loop over a loader has ended."""
    given: str = ""
    """Variable that is the first argument; "*" for an element of the loop around the call."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AxesRead(Event):
    """The input of a model with convolutions was compared with the same memory, read in other orders of the axes.

    The roughness of an image is the mean difference of its neighbouring values, as a share of its standard deviation.
    """

    absent: ClassVar[str] = "no convolution called on images with several channels on the CPU"
    model: int
    training: bool = True
    samples: int = 0
    shape: tuple[int, ...] = ()
    """Channels, height and width; or channels and length."""
    classes: bool = False
    """Whether the values are 0 and 1, with one 1 for each position: exactly, in one of the orders."""
    rough: float = 0.0
    """Median roughness of images."""
    smooth: float = 0.0
    """That of the memory in the other order with the smoother images."""
    most: float = 0.0
    """Ratio of both that four fifths of the images exceed."""
    order: str = ""
    """The other order, "height, width, channel" or "channel, height, width"; empty for classes in the right order."""
    view: Site | None = None
    """The only ``reshape`` or ``view`` in the file of the call that names these sizes."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstNormRead(Event):
    """In an evaluation, the input of the first batch normalisation was compared with its running statistics."""

    absent: ClassVar[str] = "no evaluation of a model with batch normalisation that has run in train mode"
    model: int
    layer: str = ""
    """Name of the layer in the model; empty for the model itself."""
    distance: float = 0.0
    """Median over the channels of the distance of the means, in running standard deviations."""
    ratio: float = 1.0
    """Median over the channels of the ratio of the standard deviations; 1 for too few values."""
    mean: float = 0.0
    spread: float = 0.0
    before: float = 0.0
    """Mean of the running means over the channels."""
    before_spread: float = 0.0
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchStatisticsTaken(Event):
    """At a sampled step, batch normalisation layers in train mode ran inside the `ModelCalled` before this event."""

    absent: ClassVar[str] = "no batch normalisation in train mode"
    model: int
    layers: int
    """Number of these layers."""
    values: int
    """Number of values per channel behind the statistics, for the layer with the most values; at most 16."""
    kind: str = "BatchNorm1d"
    same_input: bool = False
    """Whether the first argument is the same object as in the last sampled call of this model."""
    frozen: int = 0
    """Number of layers with frozen weights that have kept these since an earlier call, and had statistics then."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FirstStatisticsUsed(Event):
    """In an evaluation, batch normalisation used the statistics that it was built with, and the weights had changed."""

    absent: ClassVar[str] = "no evaluation with batch normalisation"
    model: int
    layers: int
    of: int
    """Number of layers in eval mode that ran."""
    loop: Site | None = None
    """For a model outside optimizers, the first loop of the program over pairs of parameters."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerRan(Event):
    """At a sampled step, a layer with parameters ran inside of a model call with gradients, for the first time."""

    absent: ClassVar[str] = "no model call"
    parameters: tuple[int, ...]
    """Its own parameters, frozen or not."""
    site: Site | None = None
    """The innermost user's line on the stack."""
    outer: Site | None = None
    """The outermost line below the call of the model: the part of the model that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwinIdle(Event):
    """In a call of a model at a sampled step, a layer ran in two places, and another one of its kind in none.

    Both have the same shapes and are parts of the same module, which ran fewer times than the layer.
    """

    absent: ClassVar[str] = "no model call"
    parameters: tuple[int, ...]
    """Those of the layer that did not run."""
    name: str
    """Its name in the model."""
    twin: str
    """Name of the layer that ran in two places."""
    first: Site | None = None
    site: Site | None = None
    """The two places, in the order in which they ran."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleUsed(Event):
    """At a sampled backward: the loss reaches a module behind ``sample()``, and the distribution by another way."""

    absent: ClassVar[str] = "no sample of a distribution with gradients"
    kind: str = "Normal"
    """Class of the distribution, or "torch.normal", a function that draws without a gradient."""
    parameters: tuple[int, ...] = ()
    """Parameters of the module."""
    site: Site | None = None
    """Line of the sample."""
    loss: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ForwardCalledDirectly(Event):
    """User code ran ``module.forward(...)`` instead of ``module(...)``; hooks of that module did not run."""

    absent: ClassVar[str] = "no model call"
    kind: str
    name: str = "model"
    hooks: int = 0
    """Number of skipped hooks, of the module and global ones of the user."""
    hook_names: tuple[str, ...] = ()
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnregisteredModuleCalled(Event):
    """Inside a model's forward, or another method of it, an unregistered module with trainable parameters ran."""

    absent: ClassVar[str] = "no model call"
    model: int
    kind: str = "Linear"
    name: str = ""
    """Place in the model, such as "layers[0]" for a plain list attribute; empty if not found."""
    parameters: tuple[int, ...] = ()
    fresh: bool = False
    """Whether it was created during the same forward call."""
    by_method: bool = False
    """Whether a method other than forward calls it, so that the call is that of a separate model."""
    site: Site | None = None
    """Line that calls it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainTensorKept(Event):
    """At a sampled step: a tensor that stands for weights, in a plain attribute of a model, has kept its values."""

    absent: ClassVar[str] = "no model call"
    model: int
    kind: str = "Module"
    """Class of the module that has it."""
    name: str = ""
    """The attribute, with the place in a list or a dict."""
    gradient: bool = False
    """Whether it gets gradients, and no optimizer holds it; else its values were drawn at random, or are zeros."""
    site: Site | None = None
    """Line that assigns it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayerSettingRead(Event):
    """A model was met, and a setting of one of its layers is outside the range that trainings use."""

    absent: ClassVar[str] = "no model call"
    model: int
    layer: str
    """Name of the layer in the model."""
    kind: str
    setting: str
    """"eps" or "momentum" of a normalisation, "p" of dropout, "negative_slope"."""
    value: str
    site: Site | None = None
    """Line that makes the layer, or that calls the model if the first is not found."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParameterUnwritten(Event):
    """Before its first update: a parameter with a gradient, and no write to it that a version counter counts."""

    absent: ClassVar[str] = "no layer of the program's own with parameters that only a source can initialise"
    model: int
    layer: str
    """Name of the layer in the model."""
    name: str
    """Attribute of the layer."""
    owners: tuple[tuple[str, str], ...] = ()
    """Names of its classes that belong to the program, each with its file."""
    files: tuple[str, ...] = ()
    """Files of the program."""
    compared: bool = True
    """Some values were read when the layer registered it, and are the same. False for models that were built unseen,
    and for equal values: memory is often zero, and so are parameters that are set to zero."""
    site: Site | None = None
    """Line that calls the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputsCompared(Event):
    """At a sampled step: the rows of a model's output in training, for samples that differ from each other."""

    absent: ClassVar[str] = "no batch of four or more samples for a model that returns one tensor"
    model: int
    site: Site | None = None
    samples: int = 0
    equal: bool = False
    """Whether all rows were equal up to rounding."""
    moved: bool = False
    """Whether the common row differs from that of the previous sampled step."""
    layer: str = ""
    """Name of the layer at which the samples became equal."""
    kind: str = ""
    """Kind of that layer, such as "ReLU"; empty if it is uncertain that a layer made them equal."""
    zero: bool = False
    """Whether that layer returned only zeros."""
    steps: int = 0
