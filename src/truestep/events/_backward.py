"""Backward passes, the autograd tape, and graphs that stay in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from truestep.events._event import Event, RepeatKind, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardEnded(Event):
    """``loss.backward()`` or ``torch.autograd.backward`` ran (``torch.autograd.grad`` is `GradientsTaken`)."""

    absent: ClassVar[str] = "no backward pass"
    repeats: ClassVar[RepeatKind] = "by call"
    site: Site | None = None
    root: str = ""
    """Kind of the operation that computed the loss, such as "NllLossBackward0"; "leaf" for a tensor without a graph."""
    divided: bool = False
    """Whether the loss was scaled (a division or multiplication by a number, or a gradient argument)."""
    retained: bool = False
    """Whether the graph was retained."""
    same_loss: bool = False
    """Whether it began from the same scalar as the pass before it, which retained the graph."""
    observed: int = 0
    """Number of parameters observed before and after."""
    onto_used: int = 0
    """Number of these with a gradient that a step had already used and that this backward added to."""
    onto_fresh: int = 0
    """Number of these with an unused gradient that this backward added to (accumulation)."""
    written: int = 0
    """Number of these that received a gradient."""
    in_step: bool = False
    """Whether it ran inside optimizer.step (a closure)."""
    scaled: bool = False
    """Whether the loss was scaled by a GradScaler."""
    loader: int | None = None
    waits: bool = False
    """Whether no parameter received a gradient, because whole ones wait for a later pass (FSDP2)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsTaken(Event):
    """``torch.autograd.grad`` ran: gradients returned, none accumulated."""

    absent: ClassVar[str] = "no call of autograd.grad"
    site: Site | None = None
    create_graph: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TapeRead(Event):
    """At a sampled backward, the autograd tape was read (before the engine ran)."""

    absent: ClassVar[str] = "no readable autograd tape"
    costly: ClassVar[bool] = True
    site: Site | None = None
    nodes: int = 0
    reached: tuple[int, ...] = ()
    """Parameters that the loss reaches."""
    forwarded: tuple[int, ...] = ()
    """Trainable parameters owned by modules that ran in the forward calls since the last step, with gradients on."""
    without_grad: tuple[int, ...] = ()
    """Other trainable parameters owned by modules that ran in these calls while gradients were off inside of them."""
    depths: tuple[int, ...] = ()
    """For each parameter in ``reached``: least number of operations between the loss and the parameter."""
    opaque: bool = False
    """Whether compiled regions or custom functions hide part of the tape."""
    leaf_root: bool = False
    """Whether the loss is a leaf tensor, without a graph."""
    cut: Site | None = None
    """The only expression that cuts the graph between the last unreached module and the next reached one."""
    cut_by: str = ""
    """Text of this expression: ".detach()", "torch.tensor(...)", "torch.no_grad()"."""
    read: bool = False
    """Whether the innermost loop or function around the line reads ``.grad`` of a tensor."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TermsRead(Event):
    """At a sampled backward: a term of the loss has no gradient, though it was computed from tensors with one.

    Sent for a line with such a term, and from then on at each sampled backward there.
    """

    absent: ClassVar[str] = "no term of a loss without a gradient"
    site: Site | None = None
    place: Site | None = None
    """The expression that cuts the gradient, or else computes the term; None if all terms have a gradient now."""
    cut: str = ""
    """Text of the cut, such as ".detach()"; empty if unknown."""
    name: str = ""
    """Variable that holds the term; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DistancesRead(Event):
    """At a sampled backward: the loss has distances of parameters from kept values, as of a penalty."""

    absent: ClassVar[str] = "no distance of weights from kept values in a loss"
    site: Site | None = None
    zero: tuple[int, ...] = ()
    """Parameters whose differences are all exactly zero."""
    other: tuple[int, ...] = ()
    """The others of these parameters."""
    live: bool = False
    """Whether the program holds the memory of one of ``zero`` under another name, and no copy of its values, and has
    changed them since. Emitted once more for this."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TargetFollowed(Event):
    """At a sampled backward: the target of a squared or absolute error has no gradient, or one to the trained model.

    A target with a gradient is a number without one, such as a reward, plus the discounted value of the next state.
    """

    absent: ClassVar[str] = "no squared or absolute error"
    site: Site | None = None
    made: Site | None = None
    """The line that makes the target, or the value in it."""
    name: str = ""
    """Variable that holds it; empty if unknown."""
    gradient: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EndsRead(Event):
    """At a sampled backward: a target is a reward plus a discounted value, and rows of its batch ended their episode.

    Rows with a value are an event only where the states cause the ends.
    """

    absent: ClassVar[str] = "no sum of rewards and discounted values with flags of ended episodes"
    site: Site | None = None
    made: Site | None = None
    """The line of the sum."""
    name: str = ""
    """Variable that holds the flags."""
    carried: bool = True
    """Whether the value is not masked in the rows that ended."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AdvantageFollowed(Event):
    """At a sampled backward: the loss has products of log-probabilities with numbers, and errors of values.

    With a gradient, such a number is a difference to the values that the errors are of.
    """

    absent: ClassVar[str] = "no product of log-probabilities beside an error of values in a loss"
    site: Site | None = None
    made: Site | None = None
    """The line that makes the difference."""
    name: str = ""
    """Variable that holds it; empty if unknown."""
    gradient: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatiosRead(Event):
    """At a sampled backward: the loss has clipped ratios of probabilities, which are all 1 after updates, or are not.

    The samples are those of earlier updates, which moved the weights.
    """

    absent: ClassVar[str] = "no clipped ratios of probabilities in the losses of several updates with the same samples"
    site: Site | None = None
    made: Site | None = None
    """The line that makes the ratios."""
    name: str = ""
    """Variable that holds them; empty if unknown."""
    one: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReturnsFollowed(Event):
    """At a sampled backward: the weights of the log-probabilities of actions are discounted sums of rewards."""

    absent: ClassVar[str] = "no discounted sums of rewards as weights of log-probabilities in a loss"
    site: Site | None = None
    made: Site | None = None
    """The line that makes the sums."""
    name: str = ""
    """Variable that holds them; empty if unknown."""
    earlier: bool = True
    """Whether the sum of each action has the rewards before it, and not those after it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightsFollowed(Event):
    """At a sampled backward: a loss has weights for single samples, or positions, that are not all equal."""

    absent: ClassVar[str] = "no weights of single samples in a loss"
    site: Site | None = None
    made: Site | None = None
    """The line of the loss function."""
    name: str = ""
    """Variable that holds the weights; empty if unknown."""
    count: int = 0
    """Number of weights, or of the samples of a focal loss."""
    reduced: Literal["", "weights", "focal"] = ""
    """The factor of the mean of the loss; empty if each loss is multiplied with its weight."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimilaritiesRead(Event):
    """At a sampled backward: a softmax in the loss is of similarities of unit vectors, times a factor."""

    absent: ClassVar[str] = "no softmax of similarities of unit vectors in a loss"
    site: Site | None = None
    made: Site | None = None
    """The line that makes them."""
    factor: float = 1.0
    classes: int = 0
    """Number of similarities that a softmax is of."""
    least: float = 0.0
    """The lowest cross entropy that vectors can have, as a share of that of guesses."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BroadcastOnTape(Event):
    """In a hand-written loss, on the tape between loss and prediction, (N, 1) and (N,) were broadcast to (N, N)."""

    absent: ClassVar[str] = "no readable autograd tape"
    site: Site | None = None
    shape: tuple[int, ...] = ()
    """Shape before the broadcast."""
    wide: tuple[int, ...] = ()
    """Shape after the broadcast."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossNotFinite(Event):
    """Backward started from a NaN or infinite tensor."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    value: str = "nan"
    parameters_finite: bool = True
    """Whether all parameters of the model were finite at that moment."""
    first_parameter: str = ""
    """The first non-finite parameter (by registration)."""
    operations: tuple[str, ...] = ()
    """Operations on the tape near the loss that can produce such a value ("LogBackward0", "DivBackward0", ...)."""
    before: float | None = None
    """The last finite loss that was read, rounded."""
    bad_parameters: int = 0
    """Number of non-finite parameters."""
    nearest: str = ""
    """The non-finite parameter with the fewest operations to the loss, if nearer ones are finite."""
    finite_nearer: int = 0
    """Number of finite parameters nearer to the loss."""
    moment: str = ""
    """Entry of the optimizer state for the first parameter, such as "exp_avg": the first non-finite one, if any."""
    moment_finite: bool = True
    """Whether this optimizer state is finite."""
    variable: str = ""
    """The first non-finite variable, in the order of the code, at the call of backward."""
    variable_holds: str = ""
    """Its non-finite values, such as "nan in 2 of 64 rows"."""
    variable_tracked: bool = False
    """Whether it required grad: then it was computed from parameters, and is not an input."""
    variable_site: Site | None = None
    """Line that sets it, or first reads it."""
    variables_finite: tuple[str, ...] = ()
    """Earlier variables, which were finite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossRead(Event):
    """At a sampled step, and at the end: the finite value that backward started from, without a GradScaler's scale."""

    absent: ClassVar[str] = "no loss of one value"
    value: float
    """Rounded to four digits."""
    moved: bool = False
    """Whether it differs from the first value of its line by more than rounding errors do, also in later digits."""
    site: Site | None = None
    root: str = ""
    """Kind of the operation that computed the loss; a division or multiplication before it is skipped."""
    scaled: bool = False
    """Whether such a division or multiplication was skipped."""
    function: str = ""
    """The loss function that the value is a multiple of, as "MseLoss"; empty for another value."""
    negative: bool = False
    """Whether it is a negative multiple."""
    turned: str = ""
    """A term with the other sign than it is meant to have: "weights" if their size is subtracted, "entropy" if that of
    a policy is added, "ratio" if the more favourable of a ratio of PPO and the clipped one is taken, "quotient" if
    errors are divided by values of both signs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsRepaired(Event):
    """At a step after a backward from a non-finite loss, all gradients were nevertheless finite."""

    absent: ClassVar[str] = "no non-finite loss"
    optimizer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsKept(Event):
    """Graphs of past steps were still alive, and their number grew with the steps."""

    absent: ClassVar[str] = "fewer than 24 backward passes"
    costly: ClassVar[bool] = True
    alive: int
    of: int
    """Number of marked past graphs."""
    nodes: int = 0
    """Number of operations in one such graph."""
    kept_bytes: int = 0
    """Bytes held by one kept graph, measured or counted from the sizes on its tape; 0 if unknown."""
    name: str = ""
    """The variable that keeps them, such as "losses"; empty if not found."""
    backward_ran: bool = True
    """Whether a backward pass has used these graphs."""
    used: bool = False
    """Whether they are those of losses that earlier passes began from, in a sum or a list: none is needed any more."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ValueUnread(Event):
    """A function of the training has made a value in steps that were read, and nothing in its source reads it."""

    absent: ClassVar[str] = "no result in the training that nothing reads"
    name: str = ""
    """Variables that hold it; empty for an expression that is a statement."""
    kind: str = "values"
    """"mask" (true and false), "graph" (results with a graph), "values" (other numbers); "sampler" and "weights" (a
    row of positive numbers) for values that are made once; "rebound" for a new value of the variable of a loop, which
    leaves the tensor of the loop as it is; "attribute" for the next value of an attribute, which a local variable
    gets; "argument" for a parameter that is passed a mask; "state"
    for the next state of a recurrent model, with the variable that each call gets instead; for an expression alone its
    operation, or "expression"."""
    again: bool = True
    """Whether each step makes it again."""
    size: int = 0
    """Number of the weights, or of the calls from one state."""
    site: Site | None = None
    """The expression."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsRetained(Event):
    """Graphs retained by a line were followed until they were freed; sent once, and again if one is used later."""

    absent: ClassVar[str] = "fewer than 24 graphs retained by one line"
    site: Site | None = None
    followed: int = 0
    used: int = 0
    """Number of these that another backward pass went through, whole or in part."""
    outlived: int = 0
    """Number of these that were still in memory when a model recorded the next graph."""
    nodes: int = 0
    """Number of operations in one such graph."""
    kept_bytes: int = 0
    """Bytes held by the results of these operations, counted from the sizes on the tape."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsChained(Event):
    """A backward pass went through the graphs of many earlier steps, which their own passes had retained."""

    absent: ClassVar[str] = "no retained graph"
    site: Site | None = None
    steps: int = 0
    """Number of earlier steps in the chain."""
    nodes: int = 0
    """Number of operations on the tape."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnomalyModeSeen(Event):
    """At a sampled backward pass, the anomaly detection of autograd was on."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    switch: Site | None = None
    """The line of the user's file that turns it on; None unless there is exactly one."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LayersJoined(Event):
    """At a sampled backward, a linear layer followed another one of its model without a nonlinear operation between."""

    absent: ClassVar[str] = "no linear layer after another one"
    first: int
    second: int
    """Weights of the two layers."""
    width: int = 0
    """Number of units between them."""
    normed: bool = False
    """Whether a batch normalisation is between them."""
    site: Site | None = None
    """The line that runs the second layer."""
    first_site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputRepeated(Event):
    """At a sampled backward, all calls of a linear layer or convolution got a result that is joined with itself.

    Sent for a layer with such calls, and from then on at each backward in which its layers are followed.
    """

    absent: ClassVar[str] = "no layer with repeated inputs"
    parameter: int
    """The weight of the layer."""
    width: int = 0
    """Number of inputs that repeat others; 0 if a call had none."""
    inputs: int = 0
    """Number of all inputs of the layer."""
    site: Site | None = None
    """The operation that joins, or the line that runs the layer."""
