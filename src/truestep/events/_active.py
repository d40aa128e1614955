"""Results of checks that call the program's code again, on copies; none with ``--passive``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckSkipped(Event):
    """A check on a copy was not possible."""

    absent: ClassVar[str] = "no skipped check"
    check: str
    """"samples", "draws", "inputs", "arguments", "targets", "derivatives", "reads", "overlap" or "state"."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplesCompared(Event):
    """A call was repeated on a copy of the model in eval mode, with all samples of the batch but one replaced."""

    absent: ClassVar[str] = "no call of a model repeated on a copy"
    model: int
    loader: int | None = None
    """Loader of the batch; None without a loader, if each row of the batch has one label."""
    samples: int = 0
    mixed: bool = False
    """Whether the result for the remaining sample depends on the others, or on its place among them."""
    cause: str = ""
    """"batch_first" (a layer processes the samples as a sequence), "view" (a view scrambles them, or the dimensions of
    each), "softmax" (a normalisation runs over them), "operation" (another one does), "repeat" (their
    repeated rows are joined with rows in another order), "place" (each sample gets the row of a table at its place), or
    empty if the cause is unknown."""
    kind: str = ""
    """Kind of that layer, such as "LSTM"; "view" or "reshape"; name of the operation, such as "mean", or table."""
    before: tuple[int, ...] = ()
    """Shape of its input."""
    after: tuple[int, ...] = ()
    """Shape of its output."""
    site: Site | None = None
    """Line of that layer, view or operation; of the call if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawsCompared(Event):
    """A call was repeated on a copy of the model in eval mode, with another seed."""

    absent: ClassVar[str] = "no call of a model repeated with another seed"
    model: int
    differ: bool = False
    """Whether the results differ: the model draws random numbers in eval mode."""
    cause: str = ""
    """"attention" (dropout of a fused attention), "module" (a dropout layer that is not a part of the model), or empty
    if the cause is unknown."""
    site: Site | None = None
    """Line that drops values; of the call if it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputsCompared(Event):
    """A call was repeated on a copy of the model with other masks, and with other samples at some places."""

    absent: ClassVar[str] = "no call of a model repeated with other inputs"
    model: int
    inputs: tuple[str, ...] = ()
    """Names of the masks that were replaced."""
    without: tuple[str, ...] = ()
    """Names of those without influence on the results, in eval and in train mode."""
    padding: tuple[str, ...] = ()
    """Names of those without influence, while values at the positions of padding have influence."""
    lost: bool = False
    """Whether the results depend on the first sample of the batch, and not on the last nor on one in the middle."""
    first: str = ""
    """Argument with sequences if the results depend on its first position, and on no other; else empty."""
    unused: bool = False
    """Whether results of operations over all positions reach the line ``ends``, and only those of the first pass it."""
    blank: int = 0
    """Number of samples with one result, since a position is read that holds only zeros for them."""
    read_at: Site | None = None
    """Line that reads this position."""
    only_padding: str = ""
    """Argument with tokens if the results depend on its padding, and on no other token; else empty."""
    ends: Site | None = None
    """Line at which the influence of the later positions ends."""
    attends: str = ""
    """Argument with padding if attention gives weight to the padding, and none to tokens; else empty."""
    turned: bool = False
    """Whether the mask of this attention is one of padding on the other side, and not inverted."""
    attends_at: Site | None = None
    """Line of this attention."""
    samples: int = 0
    site: Site | None = None
    """Line of the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArgumentsCompared(Event):
    """A call was repeated on a copy of the model with other values of each argument that has several."""

    absent: ClassVar[str] = "no call of a model repeated with other arguments"
    model: int
    training: bool = False
    """Whether the call was one of training."""
    alive: tuple[str, ...] = ()
    """Names of the arguments with influence on the results."""
    dead: tuple[str, ...] = ()
    """Names of those that the code of `forward` reads, or takes beside one of the same shape, without influence in eval
    and in train mode."""
    ends: Site | None = None
    """Line of the last operation that the first of these reaches, with a result that it does not change."""
    site: Site | None = None
    """Line of the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaddingCompared(Event):
    """Samples of a batch that end in padding were run on a copy of the model again, without a part of it."""

    absent: ClassVar[str] = "no batch with padding of different lengths"
    model: int
    argument: str = ""
    length: int = 0
    """Length of the samples with their padding."""
    trimmed: int = 0
    """Number of positions that were left out."""
    samples: int = 0
    share: float = 0.0
    """Largest difference of a result, as a share of the largest difference between two samples."""
    changes: bool = False
    """Whether this is more than an effect at the border."""
    state: int | None = None
    """Number of the result that changes, if it is a state of the samples, which a loss need not depend on."""
    pooled: bool = False
    """Whether the model joins positions by convolutions and their largest values only, as is the convention."""
    site: Site | None = None
    """Line of the call."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetsCompared(Event):
    """The targets of a loss are tokens or a feature that its model was called on; a copy was called with others."""

    absent: ClassVar[str] = "no targets that are tokens of the input"
    model: int
    shift: int = 0
    """Position of the token that is a target, minus the position of its output."""
    column: int | None = None
    """Number of the feature that is the target, scaled or shifted; None for tokens."""
    crossed: bool = False
    """Whether targets and outputs are in different orders: positions within sequences, and sequences within
    positions."""
    reads: bool = False
    """Whether the output for a target depends on that target, not only by a summary of the sequence."""
    cause: Site | None = None
    """Line of the operation that brings later tokens to earlier positions."""
    site: Site | None = None
    """Line of the call."""
    loss: Site | None = None
    made: Site | None = None
    """Line that makes the targets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseCompared(Event):
    """The noise that a model is to predict does not belong to the input that the model was called on."""

    absent: ClassVar[str] = "no target that is drawn for the loss alone"
    model: int
    site: Site | None = None
    """Line that draws the noise."""
    given: Site | None = None
    """Line that makes the input."""
    loss: Site | None = None
    samples: int = 0
    """Number of values that were compared."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseKept(Event):
    """The input of a model in training is corrupted at random, and is the target of its loss."""

    absent: ClassVar[str] = "no corrupted input that is also the target"
    model: int
    how: str
    """How the samples were corrupted: "noise", "zeros" or "values" at random places."""
    site: Site | None = None
    """Line of the loss."""
    made: Site | None = None
    """Line that makes the input."""
    clean: str = ""
    """Variable with the samples before."""
    samples: int = 0
    """Number of samples that came again with other noise."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoiseScaled(Event):
    """The input of a model in training is the sum of samples and noise, with shares as in a diffusion process."""

    absent: ClassVar[str] = "no input that is a mixture of samples and noise"
    model: int
    site: Site | None = None
    """Line that makes the input."""
    wrong: bool = False
    """True if the square of the share of the samples, plus the share of the noise, is one; False for both squares."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultCompared(Event):
    """In an evaluation, the statements after the call of a model were repeated on copies, up to a comparison."""

    absent: ClassVar[str] = "no comparison of results with targets that could be repeated"
    model: int
    how: str = ""
    """Mistake of the comparison: "broadcast" (each prediction with each target), "one", "samples" or "all" (the
    prediction is chosen over one number, over the samples or over everything), "least" (the smallest scores are
    chosen), "scores" (scores for classes), "rows" (targets of other samples), "threshold" (a middle between 0 and 1,
    for results of any size); of a figure: "means" or "counts" (means of batches, or counts, divided by samples, or by
    batches), "tensors" (sums divided by the number of tensors that hold the samples), "first" (the loop ends in its
    first pass), "cancelled" (the absolute value of a sum with both signs), "spread" (errors relative to the spread of
    the predictions), "swapped" (predictions where a function expects targets), "scale" (another scale than the
    targets), "padding" (padded positions count), "itself" (equal values on both sides), "own" (samples are searched
    among themselves, and each finds itself), "shares" (scores of a row are taken from a softmax over the samples);
    "collected" without a mistake of the comparison itself, for lists that hold the predictions and targets of all
    batches; empty without a mistake."""
    name: str = ""
    """Source of a figure with a mistake."""
    predicted: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    outside: int = 0
    """For a threshold: percentage of the results outside of 0 to 1; for "padding", of the targets that are padding."""
    spreads: tuple[float, ...] = ()
    """For "scale": mean and standard deviation of predictions, of targets, and of the targets of the training."""
    samples: int = 0
    """Number of rows of the result."""
    equal: int | None = None
    """Number of predictions that are equal to their targets; None unless both are classes."""
    plain: int | None = None
    """Number of targets that the largest scores of the result hit; of single scores, those on the right side of 0 or
    0.5, if the predictions are all alike or outside of the classes. None where a program can mean other predictions."""
    expected: float = 0.0
    """The same for predictions and targets of these numbers of classes that do not depend on each other."""
    labels: tuple[tuple[int, int], ...] = ()
    """Classes of the targets with their counts."""
    confused: tuple[tuple[int, int, int], ...] = ()
    """Class of the target, predicted class, and number of these pairs; empty if there are many of them."""
    site: Site | None = None
    """Line of the comparison."""
    call: Site | None = None
    """Line of the call of the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FigureRead(Event):
    """After an evaluation, a variable with the name of a figure such as accuracy, or a quotient, had a new value."""

    absent: ClassVar[str] = "no variable with the accuracy of an evaluation"
    name: str
    """The variable, or the source of a quotient."""
    label: str = ""
    """Text that is printed before the quotient."""
    value: float
    percent: bool = False
    """Whether the program multiplies or divides by 100 anywhere."""
    batches: int = 0
    """Number of compared batches, if the comparisons after all calls of the evaluation are known; else 0."""
    equal: int = 0
    samples: int = 0
    """Number of predictions in these batches, and of those that are right; 0 if unknown."""
    shares: float = 0.0
    """Sum of the shares of right predictions over the batches."""
    last: tuple[int, int] = (0, 0)
    """Right predictions and their number in the last batch."""
    every: tuple[int, int] = (0, 0)
    """The same in all evaluations up to this one."""
    evaluations: int = 0
    place: Site | None = None
    """Statement that first stores the variable."""
    site: Site | None = None
    """The comparison with the targets."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationLossRead(Event):
    """After an evaluation, a variable with the name of its loss, such as ``val_loss``, had a new value."""

    absent: ClassVar[str] = "no variable with the loss of an evaluation"
    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DerivativeCompared(Event):
    """The backward pass of a custom autograd function was compared with the slope of its forward pass."""

    absent: ClassVar[str] = "no custom autograd function with a smooth forward pass"
    model: int
    function: str
    ratio: float = 1.0
    """Slope by the backward pass divided by the true one, to two digits."""
    wrong: bool = False
    site: Site | None = None
    """Line that calls the function."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleReadAgain(Event):
    """The first samples of a copy of the data set behind an evaluation were read several times."""

    absent: ClassVar[str] = "no evaluation data read again from a copy"
    loader: int
    model: int
    differ: bool = False
    """Whether the input of a sample differed from read to read, and its label, a whole number, did not."""
    beside: tuple[int, ...] = ()
    """Loaders that read other samples through the same data set or the same transform."""
    site: Site | None = None
    """Line that evaluates the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SamplesShared(Event):
    """The samples drawn by the loader of an evaluation were compared with those drawn for training."""

    absent: ClassVar[str] = "no evaluation data compared with those of the training"
    loader: int
    model: int
    samples: int = 0
    """Number of samples that the loader draws."""
    shared: int = 0
    """Number of these that the weights were trained on before the evaluation; if ``later``, trained on since then."""
    outside: int = 0
    """Number of these that no training of the run had drawn."""
    beyond: int = 0
    """Number of training samples that the loader does not draw."""
    repeated: int = 0
    """Number expected to be shared by chance, because samples repeat within the training or the evaluation."""
    by_value: bool = False
    """Whether the samples were compared by value and not by their indices in one data set."""
    earlier: int = 0
    """Number that the weights were trained on with optimizers before the latest; 0 if compared by value."""
    later: bool = False
    """Whether this compares an earlier evaluation again."""
    trained: tuple[int, ...] = ()
    """Loaders that were trained on."""
    site: Site | None = None
    """Line that evaluates the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainStateCompared(Event):
    """Tensors in plain attributes of a trained model were checked, on a copy, during an evaluation."""

    absent: ClassVar[str] = "no evaluation of a model that could be checked"
    model: int
    depends: tuple[str, ...] = ()
    """Attributes that the model's own forward writes in train mode only and that affect its results."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainStateSaved(Event):
    """An object was saved while tensors in plain attributes of a model had other values than at its first call."""

    absent: ClassVar[str] = "no save of a model with tensors in plain attributes"
    model: int
    missing: tuple[str, ...] = ()
    """Attributes missing from the saved object, if it has the state of the model."""
    held: tuple[str, ...] = ()
    """Attributes in the saved object."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartsCompared(Event):
    """At a sampled step, the values of two parts of a batch that models were called on were compared."""

    absent: ClassVar[str] = "no step with two inputs of one shape"
    costly: ClassVar[bool] = True
    model: int
    one: str
    other: str
    """Names of the variables; "first half" and "second half" for those of one argument."""
    equal: bool = True
    """Whether at least nine of ten rows have equal values; for two halves, all rows."""
    rows: int = 8
    """Number of rows that were compared."""
    made: Site | None = None
    """Line that makes the second of them."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultDifferentiated(Event):
    """A backward pass of a sampled step went through a result of a model with eight or more samples.

    Of a result with a gradient everywhere, only the first is emitted.
    """

    absent: ClassVar[str] = "no gradient of a result with eight or more samples"
    costly: ClassVar[bool] = True
    model: int
    part: str = ""
    """Place or name in the result; empty if the result is one tensor."""
    columns: int = 1
    """Size of the last dimension of two or three, else of the second."""
    dead: tuple[tuple[int, int], ...] = ()
    """Ranges of columns with a gradient of zero in all samples, if these are at least half, and if the other columns
    have a gradient in the same samples."""
    own: bool = False
    """Whether weights of the model belong to these columns alone, and have gradients of zero as well."""
    asked: bool = False
    """Whether a variable next to the call has a value for each of the columns, and the model does not get it."""
    samples: int = 0
    unused: tuple[tuple[int, int], ...] = ()
    """Ranges of samples with a gradient of zero, if these are at least half of a whole batch of a DataLoader."""
    place: Site | None = None
    """First expression that takes a part of the result."""
    site: Site | None = None
    """Line that called the model."""
    loss: Site | None = None
    """Line of the backward pass."""
