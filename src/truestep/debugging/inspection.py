"""What an inspection of a step saw: layers, parameters, and where the first NaN came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from truestep.debugging._visible import Hidden
from truestep.debugging.statistics import Statistics

if TYPE_CHECKING:
    import torch
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True, slots=True)
class TensorSeen:
    """A tensor that went into a module or came out of it.

    Attributes:
        path: where it is in the value: "" for the value itself, "[0].logits" in nested ones.
        shape: its shape.
        dtype: its dtype.
        device: its device.
        statistics: of its values; None for empty tensors and those without values.
        gradient: of the gradient that the backward pass brought to it; None where none came.
    """

    path: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    statistics: Statistics | None = None
    gradient: Statistics | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a module.

    Attributes:
        inputs: the tensors that it was given.
        outputs: the tensors that it returned; none where it raised.
        takes: the shapes of what it was given, as text.
        gives: the shapes of what it returned, as text.
        raised: whether it ended with an exception.
    """

    inputs: tuple[TensorSeen, ...]
    outputs: tuple[TensorSeen, ...]
    takes: str
    gives: str
    raised: bool = False


@dataclass(frozen=True, slots=True)
class Layer:
    """A module that was called.

    Attributes:
        name: in the model; "" is the model itself.
        kind: the name of its class.
        depth: how many modules it is inside of.
        also: its other names, where it is shared.
        calls: in order.
    """

    name: str
    kind: str
    depth: int
    also: tuple[str, ...]
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class ParameterSeen:
    """A parameter of the model.

    Attributes:
        name: in the model.
        shape: its shape.
        dtype: its dtype.
        trainable: whether it required a gradient.
        reached: whether a loss reached it: its gradient was added to, or an optimizer stepped with one.
        value: of its values before the step.
        gradient: of its gradient; `Inspection.gradients` says as of when. None where it has none.
        update: the norm of its change divided by its norm; None where no optimizer stepped with it.
    """

    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    trainable: bool
    reached: bool
    value: Statistics | None
    gradient: Statistics | None
    update: float | None


@dataclass(frozen=True, slots=True)
class NotFinite:
    """The first place where NaN or Inf was seen.

    Attributes:
        what: "NaN" or "Inf".
        where: "output" of a module, "input" of the model, "inside" the forward of a module, "parameter" or "buffer",
            "gradient" of a parameter, or "output gradient" of a module.
        name: the module's, parameter's or buffer's name; "" is the model.
        kind: the name of the module's class; "" for parameters and buffers.
        count: how many values are.
        of: of how many.
        text: the sentence.
    """

    what: str
    where: str
    name: str
    kind: str
    count: int
    of: int
    text: str


@dataclass
class Inspection:
    """What was seen while the context was open. Empty until it is left, and where it did not look.

    `print(seen)` prints a table of 80 columns, `rich.print(seen)` one as wide as the terminal.

    Attributes:
        looked: whether it looked: `when` was true. `if seen:` asks for the same.
        layers: the modules that were called, in the order in which they began.
        parameters: all parameters, in the model's order.
        not_called: modules that were not called; containers that never are, and hidden modules, are not among them.
        first_nan: where the first NaN came from; None where there was none.
        first_inf: where the first Inf came from; None where there was none.
        hidden: where hooks cannot see, such as inside torch.compile.
        gradients: as of when the gradients are: "as the optimizer used them", or "as the backward pass left them".
        raised: the innermost module that was running when an exception left the context; None where there was none.
    """

    looked: bool = False
    title: str = ""
    layers: tuple[Layer, ...] = ()
    parameters: tuple[ParameterSeen, ...] = ()
    not_called: tuple[str, ...] = ()
    first_nan: NotFinite | None = None
    first_inf: NotFinite | None = None
    hidden: tuple[Hidden, ...] = ()
    gradients: str = ""
    raised: str | None = None
    scales: tuple[float, ...] = ()
    """In a run with fp16, what the losses are multiplied with; gradients that no optimizer used carry it."""
    trouble: list[str] = field(default_factory=list)
    """What could not be measured, and why."""

    @property
    def reached(self) -> tuple[str, ...]:
        """The names of the parameters that got a gradient."""
        return tuple(seen.name for seen in self.parameters if seen.reached)

    @property
    def unreached(self) -> tuple[str, ...]:
        """The names of the trainable parameters that got no gradient."""
        return tuple(seen.name for seen in self.parameters if seen.trainable and not seen.reached)

    def layer(self, name: str) -> Layer:
        """Return a layer by its name.

        Raises:
            KeyError: no module of that name was called.
        """
        for layer in self.layers:
            if name == layer.name or name in layer.also:
                return layer
        raise KeyError(name)

    def parameter(self, name: str) -> ParameterSeen:
        """Return a parameter by its name.

        Raises:
            KeyError: there is none of that name.
        """
        for seen in self.parameters:
            if seen.name == name:
                return seen
        raise KeyError(name)

    def __bool__(self) -> bool:
        return self.looked

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from truestep.debugging._layers_table import of_inspection

        yield of_inspection(self, options.max_width)

    def __str__(self) -> str:
        from truestep.debugging._tables import as_text

        return as_text(self)
