"""The result of an inspection: layers, parameters, and the origin of the first NaN."""

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
    """An input or output tensor of a module.

    Attributes:
        path: its path in the argument or output: "" for the value itself, "[0].logits" in nested ones.
        shape: its shape.
        dtype: its dtype.
        device: its device.
        statistics: statistics of its values; None for empty tensors and those without values.
        gradient: statistics of its gradient; None if it got no gradient.
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
        inputs: the tensors in its arguments.
        outputs: the tensors in its output; () if it raised.
        takes: the shapes of its arguments, as text.
        gives: the shapes of its output, as text.
        raised: True if it ended with an exception.
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
        name: its name in the model; "" is the model itself.
        kind: the name of its class.
        depth: number of modules around it.
        also: its other names, if it is shared.
        calls: its calls, in order.
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
        name: its name in the model.
        shape: its shape.
        dtype: its dtype.
        trainable: True if it required a gradient.
        reached: True if a loss reached it: its gradient was accumulated, or an optimizer stepped with a gradient.
        value: statistics of its values before the step.
        gradient: statistics of its gradient, at the time given by `Inspection.gradients`; None without a gradient.
        update: the norm of its change divided by its norm; None if no optimizer stepped with it.
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
    """The first place with NaN or Inf.

    Attributes:
        what: "NaN" or "Inf".
        where: "output" of a module, "input" of the model, "inside" the forward of a module, "parameter" or "buffer",
            "gradient" of a parameter, or "output gradient" of a module.
        name: name of the module, parameter or buffer; "" is the model.
        kind: the name of the module's class; "" for parameters and buffers.
        count: number of such values.
        of: number of all values.
        text: the finding as a sentence.
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
    """The result of `inspect`. It is empty until the context is left, and if `when` was False.

    `print(seen)` prints a table of 80 columns, `rich.print(seen)` one as wide as the terminal.

    Attributes:
        looked: True if `when` was true; also the truth value of the inspection.
        layers: the modules that were called, in the order of their first calls.
        parameters: all parameters, in the order of the model.
        not_called: modules that were not called, without hidden modules and containers that are never called.
        first_nan: the origin of the first NaN; None without one.
        first_inf: the origin of the first Inf; None without one.
        hidden: the parts that hooks cannot see, such as inside torch.compile.
        gradients: the time of the gradients: "as the optimizer used them", or "as the backward pass left them".
        raised: the innermost module that was running when an exception left the context; None without one.
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
    """Loss scales of a run with fp16; gradients that no optimizer used are multiplied by them."""
    trouble: list[str] = field(default_factory=list)
    """Measurements that failed, with the reason."""

    @property
    def reached(self) -> tuple[str, ...]:
        """Names of the parameters that got a gradient."""
        return tuple(seen.name for seen in self.parameters if seen.reached)

    @property
    def unreached(self) -> tuple[str, ...]:
        """Names of the trainable parameters that got no gradient."""
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
            KeyError: no parameter has that name.
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
