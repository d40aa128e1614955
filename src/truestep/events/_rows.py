"""Rows of batches that were found in tables which variables of the program hold; none with ``--passive``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsRead(Event):
    """At a sampled step, the rows of a batch of training were found in a larger table that a variable holds."""

    absent: ClassVar[str] = "no training on rows of a table that a variable holds"
    costly: ClassVar[bool] = True
    model: int
    table: str
    """Name of the smallest such table, such as "X_train" or "buffer.obs"."""
    rows: int
    """Number of its rows."""
    read: int
    """Number of rows of the batch."""
    least: int
    most: int
    """Least and largest place of a row of the batch in the table."""
    fresh: int = 0
    """Number of its rows that no earlier call at a sampled step has read."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsPaired(Event):
    """At a sampled step, rows of a batch and of another argument or a target were found in two tables or parts."""

    absent: ClassVar[str] = "no training on rows of two tables that variables hold"
    costly: ClassVar[bool] = True
    model: int = 0
    """Model with the argument; 0 for the target of a loss."""
    table: str
    other: str
    """Names of the table of the batch, and of that of the argument or target, which has as many rows."""
    rows: int
    equal: bool = True
    """Whether both are of the same rows."""
    batch: bool = False
    """True for parts of one batch of a loader, False for tables that variables hold."""
    chance: float = -9.0
    """Logarithm of the probability that unequal rows are in their order by chance."""
    site: Site | None = None
    """Line of the call or loss."""
    made: Site | None = None
    """Line that makes the target."""
    stored: int | None = None
    """Loader of the data set that holds both, taken from the tables before the training; None for a batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MapsPaired(Event):
    """At a sampled step, images came again with the label maps that they had before, but were turned since."""

    absent: ClassVar[str] = "no image came again with the same label map"
    costly: ClassVar[bool] = True
    model: int
    rows: int = 0
    """Number of images of the step."""
    turned: int = 0
    """Number of those that were turned; their maps would be others if they were turned in the same way."""
    maps: int = 0
    """Number of different maps of such images so far."""
    how: str = ""
    """"flipped", "rotated" (by a quarter) or "shifted"."""
    site: Site | None = None
    """Line that called the model."""
    loss: Site | None = None
    made: Site | None = None
    """Line that makes the images."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CollatedAgain(Event):
    """A collate function of the program was called again, on copies of the same samples in another order."""

    absent: ClassVar[str] = "no loader with a collate function of the program that could be called again"
    loader: int
    function: str
    crossed: tuple[tuple[str, ...], ...] = ()
    """Pairs of parts of the batch that were of other samples of each other then; in the order of the alphabet."""
    made: Site | None = None
    """The only line of the function that orders something, else its first line."""
    site: Site | None = None
    """Line that draws the batches."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsEqualled(Event):
    """At a sampled step, the rows of the arguments of a model in training were compared with each other.

    Of a model with different rows in each batch, only the first is emitted.
    """

    absent: ClassVar[str] = "no batch with rows that could be compared"
    costly: ClassVar[bool] = True
    model: int
    rows: int
    equal: bool = True
    """Whether all rows have equal values."""
    constant: bool = False
    """Whether these are hardly more than one number, as in an intercept."""
    moved: bool = False
    """Whether the common row differs from that of the previous sampled step."""
    name: str = ""
    made: Site | None = None
    """Line that makes the batch."""
    site: Site | None = None
    """Line that called the model."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsEvaluated(Event):
    """A model was called without gradients, and the rows were compared with those of the training."""

    absent: ClassVar[str] = "no evaluation on rows of a table that a variable holds"
    costly: ClassVar[bool] = True
    model: int
    table: str = ""
    """Name of the smallest table with the rows; empty if they are from no table."""
    samples: int = 0
    hits: int = 0
    """Rows that were read in a sampled step of the training."""
    inside: int = 0
    """Rows that are in the table of the training."""
    trained: str = ""
    """Name of the table of the training with most of these rows, with its number of rows."""
    rows: int = 0
    seen: int = 0
    """Number of different rows that were read in sampled steps of the training."""
    windows: bool = False
    """Whether rows are windows of a sequence; those near to a window of the training count as read."""
    own: bool = False
    """Whether the rows of the evaluation are held in another array than those of the training."""
    copies: bool = False
    """Whether the table of the training has rows several times, so that only their values are compared; `table` is the
    array that the model was called on, and `rows` the number of rows that were read."""
    site: Site | None = None
    """Line that called the model."""
    wide: bool = False
    """Whether a row has many measured numbers: such rows of two arrays are not equal by chance, as those of grids."""
    made: Site | None = None
    """Statement that first stores the table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CopiesEvaluated(Event):
    """The rows of an evaluation were compared with near rows of the training, for each class."""

    absent: ClassVar[str] = "no evaluation on rows of measured numbers with a class for each"
    costly: ClassVar[bool] = True
    model: int
    table: str
    """Name of the array of the evaluation; empty if only a data set holds it."""
    samples: int = 0
    """Number of rows of the class with most copies."""
    compared: int = 0
    """How many of them were compared."""
    hits: int = 0
    """How many of these are copies, or lie on a line with two rows of the training."""
    clumps: int = 0
    """Number of different rows that they are copies of."""
    others: int = 0
    """Number of rows of the class with least copies."""
    free: int = 0
    """How many of them were compared."""
    free_hits: int = 0
    """How many of these are copies, or lie on a line with two rows of the training."""
    between: bool = False
    """True for rows on a line with two rows of the training, False for copies that may have noise."""
    site: Site | None = None
    """Line that called the model."""
    made: Site | None = None
    """Statement that first stores the array."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResultRowsScored(Event):
    """An evaluation compared some rows of a result with targets, of a model that is trained on this whole input."""

    absent: ClassVar[str] = "no evaluation on a part of the rows of a result"
    costly: ClassVar[bool] = True
    model: int
    name: str = ""
    """Source of the selection, such as "data.test_mask"."""
    names: tuple[str, ...] = ()
    """All names that variables of the program have for it, the outermost first."""
    samples: int = 0
    """Number of the rows."""
    rows: int = 0
    """Number of all rows of the result."""
    trained: int = 0
    """Number of all rows with a gradient in the sampled steps so far."""
    hits: int = 0
    """Rows of the evaluation with a gradient."""
    agreed: bool = False
    """Whether their gradients were towards the targets of the evaluation."""
    loss: Site | None = None
    """Line of the latest loss of the training that was read."""
    site: Site | None = None
    """Line of the comparison."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelsRead(Event):
    """The labels beside the rows of a call were found in a column that a variable of the program holds."""

    absent: ClassVar[str] = "no labels of a training and an evaluation in columns that variables hold"
    costly: ClassVar[bool] = True
    training: bool = True
    """True for targets of a loss in training, False for those that an evaluation compares with results."""
    table: str = ""
    """Name of the column."""
    classes: tuple[tuple[int, int], ...] = ()
    """Each class in the whole column, with its number of rows."""
    site: Site | None = None
    """Line of the loss or the comparison."""
    made: Site | None = None
    """Statement that first stores the column."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsUnread(Event):
    """At the end of a run, no call of a model has read some rows of an array, and an evaluation reads trained rows."""

    absent: ClassVar[str] = "no rows of a table were left unread"
    table: str
    """Name of the array."""
    unused: bool = False
    """Whether no statement of the file reads the name; else the array also holds rows of the training."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartUnused(Event):
    """At the end of a run, no statement reads an array of the program, nor another one with a word of its name."""

    absent: ClassVar[str] = "no array that a variable holds was left unused"
    name: str
    """Name of the array, such as "x_val" or "self.valid[0]"."""
    site: Site | None = None
    """Statement that first stores it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredCompared(Event):
    """Stored samples were compared with those of an earlier step."""

    absent: ClassVar[str] = "no stored samples that could be compared with those of an earlier step"
    costly: ClassVar[bool] = True
    table: str
    """Name of the array."""
    rows: int
    times: int = 0
    """How often most rows were changed, by one and the same operation or by random ones, if at least twice; 0 without
    a change."""
    factor: float = 1.0
    offset: float = 0.0
    """The operation: values are multiplied by the factor, then the offset is added."""
    random: bool = False
    """True if the changes are random values that a variable, which is a view of the array, gets in place."""
    loader: int | None = None
    """Loader of the latest batch, if its data set holds the array."""
    site: Site | None = None
    """Line that called a model."""
    made: Site | None = None
    """Statement that changes values in place."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScalingRead(Event):
    """Statistics of the table of an evaluation were compared with those of the training, after its first call.

    A table that turns out to be scaled together with later ones is emitted again.
    """

    absent: ClassVar[str] = "no evaluation on a table with statistics that could be compared with those of the training"
    costly: ClassVar[bool] = True
    model: int
    table: str
    """Name of the table."""
    rows: int
    trained: str = ""
    """Name of the table of the training; empty if it is the same."""
    kind: str = ""
    """Rows that the features are scaled with: "own" for those of the evaluation, "joint" for those of both; "unlike" if
    those of the training are scaled with their own, in another way."""
    how: str = ""
    """"standard" for means of 0 and standard deviations of 1, "range" for 0 to 1, "centred" for means of 0; of
    fitted rows also "sample" for deviations of a sample, "symmetric" for -1 to 1, "robust" for medians and
    quartiles."""
    features: int = 0
    """Number of features with such values."""
    whole: str = ""
    """Name of the table with the rows of both; empty if no variable holds one."""
    series: bool = False
    """Whether the rows are the steps of a series that windows were cut from."""
    fitted: bool = False
    """Whether `whole` is a table as measured, with more rows than those of the training, and the inputs of both are
    rows of it that are scaled with its statistics."""
    shift: float = 0.0
    """Of a series that is scaled together with the training, and of fitted rows: largest distance of the mean and the
    standard deviation of the training from 0 and 1, in a feature with such values over both; of a range, that of the
    training from a minimum or maximum."""
    loader: int | None = None
    """Loader of the latest batch."""
    site: Site | None = None
    """Line that called the model."""
    made: Site | None = None
    """Statement that stores the scaled table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderRead(Event):
    """The columns of the table of an evaluation are those of the training, in the same order or in another one."""

    absent: ClassVar[str] = "no evaluation on a table with the columns of the training"
    costly: ClassVar[bool] = True
    model: int
    table: str
    """Name of the table."""
    rows: int
    moved: int = 0
    """Number of columns in the places of others, as their distributions and correlations show."""
    columns: int = 0
    """Number of all columns."""
    site: Site | None = None
    """Line that called the model."""
    made: Site | None = None
    """Statement that stores the table."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowsShared(Event):
    """Windows of an evaluation, with the next steps as targets, were compared with those of the training."""

    absent: ClassVar[str] = "no evaluation on windows of a series with their next steps as targets"
    costly: ClassVar[bool] = True
    model: int
    table: str
    """Name of the table with the windows of the evaluation."""
    trained: str
    """Name of that with the windows of the training."""
    samples: int
    shared: int
    """Windows that are continued by a window of the training, one step later: it ends with their target."""
    expected: float
    """Number of these to expect if each window is continued by one of the training."""
    loader: int | None = None
    site: Site | None = None
    """Line that called the model."""
    made: Site | None = None
    """Statement that stores the windows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SelectionsShared(Event):
    """Masks or indices that variables hold, of two of a training, a validation and a test, have rows in common."""

    absent: ClassVar[str] = "no masks or indices of parts of the data with rows in common"
    costly: ClassVar[bool] = True
    one: str
    other: str
    """Names of the two, such as "data.val_mask"; the second is of the later use."""
    parts: tuple[str, str]
    """Their purpose: "train", "validation" or "test"."""
    rows: tuple[int, int]
    """Number of rows of each."""
    shared: int
    """Number of rows of both."""
    stretches: int
    """Number of unbroken stretches that these are in."""
    chosen: bool = False
    """Whether a branch of the program keeps the best figure so far, of something else than the training."""
    site: Site | None = None
    """Statement that last writes the second one."""
    made: Site | None = None
    """Statement that last writes the first one."""
