"""Calls of models, losses."""

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
    """Values of the first argument of a model on the CPU, at sampled steps and in first calls without gradients."""

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
class SampleUsed(Event):
    """At a sampled backward: the loss reaches a module behind ``sample()``, and the distribution by another way."""

    absent: ClassVar[str] = "no sample of a distribution with gradients"
    kind: str = "Normal"
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
    """Inside a model's forward, an unregistered module with trainable parameters ran."""

    absent: ClassVar[str] = "no model call"
    model: int
    kind: str = "Linear"
    name: str = ""
    """Place in the model, such as "layers[0]" for a plain list attribute; empty if not found."""
    parameters: tuple[int, ...] = ()
    fresh: bool = False
    """Whether it was created during the same forward call."""
    site: Site | None = None
    """Line in forward that calls it."""


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
class LossFollowed(Event):
    """The calls of a loss function with gradients at a line in a sampled step, followed until the next ones there."""

    absent: ClassVar[str] = "no loss function of torch.nn with gradients at two sampled steps"
    kind: str
    site: Site | None = None
    differentiated: bool = False
    """Whether a backward pass went through the input of such a call, or may have done so."""
    only_last: bool = False
    """Whether the line had several calls in the step, and a pass went through the input of the last one only."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossComputed(Event):
    """A loss function of torch was called (as a module or as a function)."""

    absent: ClassVar[str] = "no loss function of torch"
    repeats: ClassVar[RepeatKind] = "by value"
    kind: str
    """"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div"."""
    site: Site | None = None
    given: tuple[str, ...] = ("input", "target")
    """Expressions for its input and target, as in the user's call."""
    input_rank: int = 0
    target_rank: int = 0
    classes: int = 0
    """Size of the class dimension of the input (dimension 1, or 0 for a single sample)."""
    input_from: str = ""
    """Name of the operation that returned the input, such as "SoftmaxBackward0"; empty if it tracks no gradient."""
    softmax_dim: int | None = None
    """Dimension of the softmax in input_from, counted from the end (-1 is the last); None for other operations."""
    made_by: str = ""
    """Name of the operation that computed the values of the input, skipping later views and selections."""
    softmax_over: str = ""
    """Dimension of the softmax or log_softmax that computed the input: "classes", "one" (a dimension of size 1),
    "batch" or "other"; empty without such an operation, or if the input lacks some of its values."""
    sums_to_one: bool | None = None
    """Whether rows of the input are non-negative and sum to one; None if not checked."""
    values: str = ""
    """Kind of the first inputs of a loss on log-probabilities: "probabilities" (non-negative, rows sum to one),
    "log-probabilities" (no value above zero), "unbounded"; empty if not checked."""
    beyond: int | None = None
    """Percentage of regression targets clearly outside the range of the operation in made_by; None if not checked, or
    if the operation has no limited range."""
    broadcast: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Shapes of input and target if they differ and broadcast to a shape larger than both."""
    viewed: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """At a sampled step: shapes before and after the view that made the input, if it mixes its positions."""
    reduction: str = "mean"
    grad: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbabilitiesRead(Event):
    """At a sampled step: targets of a loss that expects probabilities and averages or sums them without weights."""

    absent: ClassVar[str] = "no loss on logits with probabilities as targets"
    kind: str
    """"cross_entropy", "binary_cross_entropy_with_logits" or "kl_div"."""
    site: Site | None = None
    outside: int = 0
    """Percentage of the targets outside of 0 to 1 by at least 0.5; only those below 0 for cross entropy and KL
    divergence, and those above 0 for logarithms."""
    lowest: float = 0.0
    highest: float = 1.0
    dense: bool = True
    """Whether most targets are not zero."""
    swapped: bool = False
    """Whether a model computed the targets, but not the input of the loss."""
    logarithms: bool = False
    """Whether the loss takes the targets for logarithms of probabilities (``log_target=True``)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddingRead(Event):
    """At a sampled step: class targets of a loss with an input from an embedding with a padding index."""

    absent: ClassVar[str] = "no cross entropy after an embedding with a padding index"
    kind: str
    site: Site | None = None
    index: int = 0
    """Padding index of the embedding, which has as many entries as there are classes."""
    share: int = 0
    """Percentage of the targets that equal this index and count in the loss; 0 if it also appears before row ends."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelsCounted(Event):
    """Labels of a classification loss with gradients were read, at sampled steps and in its first calls on the CPU.

    A loss without weights is read until two of its labels differ.
    """

    absent: ClassVar[str] = "no labels of a classification loss"
    kind: str
    """"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"."""
    site: Site | None = None
    classes: int = 1
    """Number of classes; for a binary loss the number of its columns."""
    labels: int = 0
    rows: int = 0
    only: float | None = None
    """The one value of all these labels; None if they differ."""
    weight: int | None = None
    """Parameter with a row or column for each class that the input comes from directly; only for equal labels."""
    counts: tuple[int, ...] = ()
    """For a weighted loss: labels of each class, or positive labels of each column."""
    weights: tuple[float, ...] = ()
    """Weight of each class, or factor of the positive labels of each column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassesTrained(Event):
    """At a sampled step, the labels of a classification loss with gradients were counted."""

    absent: ClassVar[str] = "no labels of a classification loss"
    costly: ClassVar[bool] = True
    kind: str
    """"cross_entropy" or "nll_loss"."""
    classes: int = 0
    """Number of classes of the model."""
    labels: tuple[tuple[int, int], ...] = ()
    """Labels with their counts, without those that the loss ignores."""
    ignored: int = -100
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetsTrained(Event):
    """At a sampled step, the targets of a squared error or a binary loss with gradients were summed."""

    absent: ClassVar[str] = "no targets of a squared error or a binary loss"
    costly: ClassVar[bool] = True
    kind: str
    """"mse_loss", "binary_cross_entropy" or "binary_cross_entropy_with_logits"."""
    rows: int
    """Number of targets in each column."""
    sums: tuple[float, ...]
    """Sum of each column; of all targets as one column if there are many."""
    squares: tuple[float, ...]
    """Sum of the squares of each column."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetsMatched(Event):
    """At a sampled step: the targets of a loss were compared with its input; of a line until they are different."""

    absent: ClassVar[str] = "no loss of torch with targets that could be compared with its input"
    kind: str
    site: Site | None = None
    how: str = ""
    """"detach" (the targets equal the input), "argmax", "round", "threshold" or "softmax" of it; else empty."""
    varied: bool = False
    """Whether two of these targets differ."""
    graph: bool = True
    """Whether the input has a gradient."""
    labels: int = 0
