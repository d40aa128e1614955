"""Batches, calls of models, losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderStarted(Event):
    absent: ClassVar[str] = "no DataLoader"
    loader: int
    left: str = ""
    """What leaves the loop at the site in its first round whatever the data: "return", "break", or "next" where there
    is no loop but ``next(iter(loader))``; "unread" where the source cannot be read; empty where nothing does."""
    left_at: tuple[int, ...] = ()
    """Line, column, last line and last column of what leaves it."""
    body: tuple[int, ...] = ()
    """First and last line of the loop."""
    sums: bool = False
    """Whether the loop adds something up over its rounds."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchDrawn(Event):
    absent: ClassVar[str] = "no DataLoader"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchRead(Event):
    """In the first passes over a loader, with gradients on: what a few of its batches on the CPU hold."""

    absent: ClassVar[str] = "no batch on the CPU was read"
    loader: int
    place: int
    """Which batch of the pass, from 0."""
    fingerprint: str = ""
    """Equal for two batches whose shapes and sampled values are equal."""
    variety: int = 0
    """How many different numbers were among the sampled values that are not whole numbers."""
    labels: tuple[int, ...] = ()
    """First and last label, and how many different ones, where the batch has one label per sample in rising order."""
    labelled: bool = False
    """Whether the batch has one label per sample."""
    alike: int = 0
    """How many samples the batch has, where all are equal and not constant, and their labels differ."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderEnded(Event):
    """The loader gave its last batch (a loop left by ``break`` has no such event)."""

    absent: ClassVar[str] = "no DataLoader read to its end"
    loader: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LoaderTimed(Event):
    """Told when watching ends, of each DataLoader that the run waited for, for a second in all or longer."""

    absent: ClassVar[str] = "no DataLoader"
    loader: int
    passes: int
    drawn: int
    """Batches drawn in all passes."""
    waited_s: float
    """How long the run waited for its batches and its iterators, after the very first batch."""
    starting_s: float
    """How much of that, at the least, went into starting workers again."""
    span_s: float
    """From the very first batch to the latest one."""
    delayed_s: float = 0.0
    """How long the training's thread waited meanwhile for a processor that other programs had."""
    crowded: bool = False
    """Whether that was a large part of the time: the loader's workers had no processors either."""
    beside: bool = False
    """Whether an accelerator may have worked while the run waited."""


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
    dropout: Site | None = None
    """Where the forward applied dropout although all of the model was in eval mode, by a function that is not given the
    mode, on values that the model computed; only of calls without gradients."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchStatisticsTaken(Event):
    """At a sampled step, layers of batch normalisation in train mode ran inside the model call told before this."""

    absent: ClassVar[str] = "no batch normalisation in train mode"
    model: int
    layers: int
    """How many of these layers ran."""
    values: int
    """Of the layer that had most: how many values of each channel its statistics were taken from; 16 for more."""
    kind: str = "BatchNorm1d"
    same_input: bool = False
    """Whether the first argument is the very object of the last sampled call of this model."""
    site: Site | None = None
    """The line that called the model."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossComputed(Event):
    """One of torch's loss functions was called (as a module or as a function)."""

    absent: ClassVar[str] = "no loss function of torch"
    kind: str
    """"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div"."""
    site: Site | None = None
    given: tuple[str, ...] = ("input", "target")
    """What the user calls its input and target, in the words of the call."""
    input_rank: int = 0
    target_rank: int = 0
    classes: int = 0
    """Size of the class dimension of the input (dimension 1, or 0 for a single sample)."""
    input_from: str = ""
    """Name of the operation that made the input, such as "SoftmaxBackward0"; empty when it tracks no gradient."""
    softmax_dim: int | None = None
    """The dimension of that softmax, counted from the end (-1 is the last), where input_from is one."""
    made_by: str = ""
    """Name of the operation that made the values of the input, which views and selections may have followed."""
    softmax_over: str = ""
    """What a softmax or log_softmax that made the input ran over: "classes", "one" (a dimension of size 1), "batch" or
    "other"; empty where none made it, or where not all of its values are there."""
    sums_to_one: bool | None = None
    """Whether rows of the input were seen to be non-negative and to sum to one; None when not looked at."""
    values: str = ""
    """What the first inputs of a loss on log-probabilities were seen to be: "probabilities" (non-negative, rows sum to
    one), "log-probabilities" (none above zero), "unbounded"; empty when not looked at."""
    beyond: int | None = None
    """Percentage of targets of a regression that lie clearly beyond what the operation in made_by can give; None when
    not looked at, and where it can give any number."""
    broadcast: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """Shapes of input and target where they differ and broadcast to something larger than both."""
    reduction: str = "mean"
    grad: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbabilitiesRead(Event):
    """At a sampled step: targets that a loss takes for probabilities, and that it averages or sums without weights."""

    absent: ClassVar[str] = "no loss on logits with targets that are probabilities was seen"
    kind: str
    """"cross_entropy" or "binary_cross_entropy_with_logits"."""
    site: Site | None = None
    outside: int = 0
    """Percentage of them that lie outside of 0 to 1 by at least 0.5; for cross entropy below it."""
    lowest: float = 0.0
    highest: float = 1.0
    dense: bool = True
    """Whether most of them are not zero."""
    swapped: bool = False
    """Whether a model computed them, and not the input of the loss."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddingRead(Event):
    """At a sampled step: class targets of a loss whose input comes from an embedding with a padding index."""

    absent: ClassVar[str] = "no cross entropy behind an embedding with a padding index was seen"
    kind: str
    site: Site | None = None
    index: int = 0
    """The padding index of the embedding, which has as many entries as there are classes."""
    share: int = 0
    """Percentage of the targets that are this index and count in the loss, 0 where it stands not only at row ends."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OutputsCompared(Event):
    """At a sampled step: the rows of what a model returned in training, for samples that differ from each other."""

    absent: ClassVar[str] = "no batch of four or more samples given to a model that returns one tensor"
    model: int
    site: Site | None = None
    samples: int = 0
    equal: bool = False
    """Whether all rows were equal, but for rounding."""
    moved: bool = False
    """Whether the row that all are equal to was another one at the look before."""
    layer: str = ""
    """The layer at which the samples became equal, as the model names it."""
    kind: str = ""
    """What that layer is, such as "ReLU"; empty where it is not certain that a layer made them equal."""
    zero: bool = False
    """Whether that layer gave only zeros."""
    steps: int = 0
