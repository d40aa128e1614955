"""Losses with their inputs and targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, RepeatKind, Site


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
    """Shapes of input and target if they differ and broadcast to a shape larger than both, or if one is a square table
    made before, and the other one a computed column or row of it."""
    viewed: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    """At a sampled step: shapes before and after the view that made the input, if it mixes its positions."""
    blank: int | None = None
    """Number of rows of scores that hold only zeros, at equal distances and beside others, and count in a cross
    entropy; None if not checked."""
    reduction: str = "mean"
    grad: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbabilitiesRead(Event):
    """At a sampled step: targets of a loss that expects probabilities and averages or sums them without weights."""

    absent: ClassVar[str] = "no loss on logits with probabilities as targets"
    kind: str
    """"cross_entropy", "binary_cross_entropy_with_logits" or "kl_div"; with ``over`` also another one."""
    site: Site | None = None
    over: str = ""
    """"samples" if the targets sum to one over the samples, and the input over the classes; "classes" if reversed."""
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
class SignedLabelsRead(Event):
    """At a sampled backward, in the first ones of a line: labels of two values in a loss that expects -1 and 1."""

    absent: ClassVar[str] = "no loss that expects labels of -1 and 1"
    kind: str
    """"hinge", "logistic", "soft margin", "cosine embedding", "hinge embedding", or "embedding" of one of these."""
    site: Site | None = None
    zeros: int = 0
    """Percentage of labels of 0, if there is no -1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverlapRead(Event):
    """At a sampled backward: an overlap of predictions and targets (dice, IoU, Tversky) by hand, of no probabilities.

    It is a quotient of two sums that are linear in the prediction; the upper one has products with the targets.
    """

    absent: ClassVar[str] = "no overlap of predictions and targets in a loss"
    costly: ClassVar[bool] = True
    site: Site | None = None
    """Line of the backward pass."""
    scores: bool = False
    """Whether the predictions are outputs of a linear or convolutional layer."""
    shared: bool = False
    """Whether the same loss has a function of logits of this layer: a softmax, a sigmoid, or an entropy with logits."""
    outside: bool = False
    """Whether a quotient is clearly below zero or above one, which no overlap of probabilities is."""
    crossed: bool = False
    """Whether the predictions are from a softmax over another dimension than that of the classes of the targets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartnersScored(Event):
    """At a sampled step: scores of each sample with others, and its partner as the class, as in contrastive losses."""

    absent: ClassVar[str] = "no cross entropy of scores between samples"
    costly: ClassVar[bool] = True
    site: Site | None = None
    rows: int = 0
    itself: bool = False
    """Whether all partners have the same score, the largest of their rows, and most other scores are smaller."""
    other: bool = False
    """Whether three of four samples have a higher score with the usual partner: the one in the other half of the batch
    for a symmetric matrix, else the one of the same number."""
    symmetric: bool = False
    """Whether rows and columns of the scores are the same samples."""
    columns: bool = False
    """Whether the scores are products of vectors that are normalised over the samples, not each for itself."""


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
    alone: bool = False
    """Whether no other target counts, although there are others: a mask by hand left them out."""
    labels: bool = False
    """Whether the targets are labels of tokens, from another vocabulary: `index` is the label of all padding."""
    ended: bool = False
    """Whether one and the same token, which occurs once in a row, comes before the padding of each row."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadingsRead(Event):
    """At a sampled step: a mask of a loss left nothing out, and the targets have one value again and again, far off."""

    absent: ClassVar[str] = "no mask of a loss that left nothing out"
    costly: ClassVar[bool] = True
    table: str
    """Name of the array with the targets."""
    value: float = 0.0
    """The value that is repeated; NaN if it differs by column."""
    share: float = 0.0
    """Share of the targets with this value."""
    made: Site | None = None
    """Call that looks for NaN."""
    site: Site | None = None
    """Line of the backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedRead(Event):
    """At a sampled step: the positions that a loss counts are not those with a target.

    A line is read again after the first such event; if a later loss has another mask, its event has no kind.
    """

    absent: ClassVar[str] = "no loss with a mask"
    costly: ClassVar[bool] = True
    kind: str
    """"alone" for positions without a target only, "moved" for the positions before or after those with one; at the
    ends of rows "extra" for one position of padding in each, and "late" if the first one is missing, too; "kept" for
    tokens that the model reads as they are, and none that is masked."""
    value: float = 0.0
    """Value of the targets at positions without one; of "kept" the mark of masked tokens in the input."""
    made: Site | None = None
    """Line of the loss function; None if it is not known."""
    site: Site | None = None
    """Line of the backward pass."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TranscriptsRead(Event):
    """At a sampled step: inputs and targets of a CTC loss with gradients."""

    absent: ClassVar[str] = "no CTC loss with gradients"
    values: str
    """Kind of the first inputs: "log-probabilities" (their exponentials sum to one), "probabilities" or "others"."""
    blank: int = 0
    blanks: int = 0
    """Percentage of the targets, without their padding, that are the blank."""
    site: Site | None = None


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
    """For a weighted loss: labels of each class, or positive labels of each column; of all with a single factor."""
    weights: tuple[float, ...] = ()
    """Weight of each class, or factors of the positive labels."""


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
class DivergenceRead(Event):
    """At a sampled backward: the loss is a reconstruction error plus a KL divergence from the standard normal."""

    absent: ClassVar[str] = "no loss with a reconstruction error and a KL divergence"
    site: Site | None = None
    weight: float = 1.0
    """Factor of the divergence, if both were sums over the values of a sample."""
    nats: float = 0.0
    """The divergence of a sample, on average, in nats."""
    values: int = 0
    """Number of values of the reconstruction of a sample."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SquashedTwice(Event):
    """At a sampled backward: a term of the loss is the logarithm of a sigmoid of the result of a sigmoid."""

    absent: ClassVar[str] = "no logarithm of a sigmoid of a sigmoid"
    site: Site | None = None
    form: str = ""
    """"logsigmoid" or "log of 1 + exp"."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatesRead(Event):
    """At a sampled backward: the loss is that of a Poisson distribution, of logarithms of rates."""

    absent: ClassVar[str] = "no Poisson loss of logarithms of rates"
    site: Site | None = None
    made_by: str = ""
    """Name of the operation that made the logarithms."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogitsRead(Event):
    """At a sampled backward, in the first ones of a model: the uses of its results in the loss were read."""

    absent: ClassVar[str] = "no loss of results of a model that could be followed"
    model: int
    squashed: bool = False
    """Whether all of them are those of logits: sigmoids, or the parts of their cross entropy."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaskedScoresRead(Event):
    """At a sampled backward, in the first ones of a line: a softmax on the tape of the loss has scores with a mask."""

    absent: ClassVar[str] = "no softmax of scores with a mask"
    site: Site | None = None
    share: float = 0.0
    """Weight of the masked positions, a mean over rows that have both kinds, from 0 to 1."""
    form: str = "fill"
    """Operation that set the masked scores: "fill" for ``masked_fill``, "where", "product" with zeros and ones, or
    "put" for an assignment to ``scores[mask]``."""
    log: bool = False
    """Whether it is a log-softmax."""
    at_random: bool = False
    """Whether the positions of the mask look independent of each other, as those of a dropout, and are new."""
    queries: bool = False
    """Whether the mask covers all scores of some queries, and no keys: the share is that of the positions of these."""
    files: tuple[str, ...] = ()
    """Files of the program, if the share is not 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SoftmaxRead(Event):
    """At a sampled backward, in the first ones of a line: the use of a softmax on the tape shows its dimension."""

    absent: ClassVar[str] = "no self-attention by hand"
    site: Site | None = None
    use: str = "attention"
    """"attention" (the weights of self-attention by hand), or "labels" (a label picks a value of each row)."""
    over: str = "keys"
    """The dimension of the softmax of attention: "keys", over which the values are summed, "queries", "samples" (the
    first of three or more dimensions), "heads", or "one" number. Of labels: "classes" or "samples"."""
    shape: tuple[int, ...] = ()
    """That of its result."""
    dim: int = -1
    """Its dimension, as the program passed it."""
    files: tuple[str, ...] = ()
    """Files of the program, if it runs over another dimension."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnitVectorsRead(Event):
    """At a sampled backward, in the first ones of a line: a product of two tensors of unit vectors on the tape."""

    absent: ClassVar[str] = "no product of unit vectors"
    site: Site | None = None
    apart: bool = False
    """Whether the product sums over the features of a layer, and both norms run along another dimension."""
    shape: tuple[int, ...] = ()
    """That of the vectors."""
    dim: int = -1
    """Dimension of the norm of the first factor."""
    files: tuple[str, ...] = ()
    """Files of the program, if it runs over another dimension."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PenaltyRead(Event):
    """At a sampled backward, in the first ones of a line: a penalty on the norm of gradients on the tape."""

    absent: ClassVar[str] = "no penalty on gradients"
    site: Site | None = None
    over: str = ""
    """"batch" if one norm is taken of all samples, "position" if one of each position of a sample; else empty."""
    shape: tuple[int, ...] = ()
    """That of the gradients."""


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultPushed(Event):
    """At a sampled step, a backward pass reached scores of one number for each sample.

    Emitted if all are moved in one direction, or if they are scores of the result of another model.
    """

    absent: ClassVar[str] = "no loss of one score for each sample"
    costly: ClassVar[bool] = True
    model: int
    scored: int = 0
    """The model that made the input of the scores; 0 for other inputs."""
    tracked: bool = False
    """True if that result has its graph: its model gets a gradient as well."""
    up: bool | None = None
    """True if a step makes all scores larger, False if it makes all of them smaller, None for both."""
    size: float = 0.0
    """Mean size of the gradient."""
    loss: Site | None = None
    """Line of the backward pass."""
