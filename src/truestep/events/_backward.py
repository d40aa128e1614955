"""Backward passes, the autograd tape, and graphs that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from truestep.events._event import Event, Site


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BackwardEnded(Event):
    """``loss.backward()`` or ``torch.autograd.backward`` ran (``torch.autograd.grad`` is `GradientsTaken`)."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    root: str = ""
    """Kind of the operation that made the loss, such as "NllLossBackward0"; "leaf" for a tensor without a history."""
    divided: bool = False
    """Whether the loss was scaled on its way (a division or multiplication by a number, a gradient argument)."""
    retained: bool = False
    observed: int = 0
    """How many parameters were looked at before and after."""
    onto_used: int = 0
    """Of these, how many had a gradient that a step had already used, and that this backward added to."""
    onto_fresh: int = 0
    """Of these, how many had an unused gradient that this backward added to (accumulation)."""
    written: int = 0
    """Of these, how many received a gradient at all."""
    in_step: bool = False
    """Whether it ran inside optimizer.step (a closure)."""
    scaled: bool = False
    """Whether the loss was scaled by a GradScaler."""
    loader: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsTaken(Event):
    """``torch.autograd.grad`` ran: gradients returned, none accumulated."""

    absent: ClassVar[str] = "no call of autograd.grad"
    site: Site | None = None
    create_graph: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TapeRead(Event):
    """At a sampled backward, the autograd tape was walked (before the engine ran)."""

    absent: ClassVar[str] = "no readable autograd tape"
    site: Site | None = None
    nodes: int = 0
    reached: tuple[int, ...] = ()
    """Parameters that the loss reaches."""
    forwarded: tuple[int, ...] = ()
    """Trainable parameters owned by modules that ran in the forward calls since the last step, with gradients on."""
    depths: tuple[int, ...] = ()
    """Beside ``reached``: how many operations lie between the loss and the parameter, at least."""
    opaque: bool = False
    """Whether compiled regions or custom functions hide part of the tape."""
    leaf_root: bool = False
    cut: Site | None = None
    """The only expression that cuts, between the last module the loss does not reach and the next that it reaches."""
    cut_by: str = ""
    """Its words: ".detach()", "torch.tensor(...)"."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BroadcastOnTape(Event):
    """On the tape, between loss and prediction, a (N, 1) met a (N,) and became (N, N), in a hand-written loss."""

    absent: ClassVar[str] = "no readable autograd tape"
    site: Site | None = None
    shape: tuple[int, ...] = ()
    wide: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossNotFinite(Event):
    """The tensor that backward started from was NaN or infinite."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    value: str = "nan"
    parameters_finite: bool = True
    """Whether all parameters the model holds were finite at that moment."""
    first_parameter: str = ""
    """The first parameter (by registration) that was not finite."""
    operations: tuple[str, ...] = ()
    """Operations on the tape near the loss that can make such a value ("LogBackward0", "DivBackward0", ...)."""
    before: float | None = None
    """The finite loss that was looked at last, rounded."""
    bad_parameters: int = 0
    nearest: str = ""
    """The nearest parameter that is not finite, by operations from the loss, where nearer ones are finite."""
    finite_nearer: int = 0
    """How many those are."""
    moment: str = ""
    """What the optimizer keeps of the first parameter's gradients ("exp_avg"): the first one that is not finite."""
    moment_finite: bool = True
    """Whether all that it keeps of them is finite."""
    variable: str = ""
    """The first variable, in the order of the code, that was not finite where backward was called."""
    variable_holds: str = ""
    """What it held, such as "nan in 2 of 64 rows"."""
    variable_tracked: bool = False
    """Whether it required grad: it was computed, not given."""
    variable_site: Site | None = None
    """Where it is set, or first read."""
    variables_finite: tuple[str, ...] = ()
    """Those before it that were finite."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossRead(Event):
    """At a sampled step, the finite value of a classification loss that backward started from, unscaled."""

    absent: ClassVar[str] = "no classification loss"
    value: float
    """Rounded to four digits."""
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientsRepaired(Event):
    """At a step after a backward from a loss that was not finite: all gradients were finite all the same."""

    absent: ClassVar[str] = "no loss that is not finite"
    optimizer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsKept(Event):
    """Graphs of past steps were still alive, and their number grew with the steps."""

    absent: ClassVar[str] = "fewer than 24 backward passes"
    alive: int
    of: int
    """How many past graphs were marked."""
    nodes: int = 0
    """Operations in one such graph."""
    kept_bytes: int = 0
    """What one kept graph holds, measured or counted from the sizes on its tape; 0 when unknown."""
    name: str = ""
    """The variable that keeps them, such as "losses"; empty when not found."""
    backward_ran: bool = True
    site: Site | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsRetained(Event):
    """Graphs that a line retained were followed until they were gone; told once, and again when one is used later."""

    absent: ClassVar[str] = "fewer than 24 graphs retained by one line"
    site: Site | None = None
    followed: int = 0
    used: int = 0
    """How many of them another backward pass went through, whole or in part."""
    outlived: int = 0
    """How many were still in memory when a model recorded the next graph."""
    nodes: int = 0
    """Operations in one such graph."""
    kept_bytes: int = 0
    """What the results of these operations take, counted from the sizes on the tape."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GraphsChained(Event):
    """A backward pass went through the graphs of many earlier steps, which their own passes had retained."""

    absent: ClassVar[str] = "no graph that was retained"
    site: Site | None = None
    steps: int = 0
    nodes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnomalyModeSeen(Event):
    """At a sampled backward pass, the anomaly detection of autograd was on."""

    absent: ClassVar[str] = "no backward pass"
    site: Site | None = None
    switch: Site | None = None
    """The one line of the user's file that switches it on; None where there is none or there are several."""
