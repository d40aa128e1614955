"""The observations of the hooks of an inspection, and the conclusions from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

from truestep.debugging._visible import Hidden
from truestep.debugging.inspection import Call, Inspection, Layer, NotFinite, ParameterSeen, TensorSeen
from truestep.debugging.statistics import Measured, Statistics, read

_NEVER_CALLED = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


class Values:
    """The measured values of a tensor, which are kept after the tensor is freed."""

    __slots__ = ("call", "device", "dtype", "gradient", "measured", "shape")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape = () if tensor.is_nested else tuple(tensor.shape)
        self.dtype, self.device = tensor.dtype, tensor.device
        self.measured = Measured(tensor)
        self.gradient: Measured | None = None
        self.call: CallRecord | None = None
        """The first call that returned it, if it waits for a gradient."""

    def seen(self, path: str) -> TensorSeen:
        """Return the public form."""
        gradient = None if self.gradient is None else self.gradient.known
        return TensorSeen(path, self.shape, self.dtype, self.device, self.measured.known, gradient)


@dataclass(eq=False, slots=True)
class CallRecord:
    """One call of a module, running or ended."""

    name: str
    kind: str
    depth: int
    takes: str
    error: int
    """`id` of the exception that was being handled when the call began."""
    parent: CallRecord | None = None
    gives: str = "-"
    raised: bool = False
    inputs: list[tuple[str, Values]] = field(default_factory=list)
    outputs: list[tuple[str, Values]] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Name and class of its module, for a sentence."""
        return f"{self.name} ({self.kind})" if self.name else f"the model ({self.kind})"

    def call(self) -> Call:
        """Return the public form."""
        inputs = tuple(values.seen(path) for path, values in self.inputs)
        outputs = tuple(values.seen(path) for path, values in self.outputs)
        return Call(inputs, outputs, self.takes, self.gives, self.raised)


@dataclass(eq=False, slots=True)
class ParameterRecord:
    """The observations of a parameter or buffer."""

    name: str
    tensor: torch.Tensor
    trainable: bool
    value: Measured
    gradient: Measured | None = None
    reached: bool = False
    stepped: bool = False
    change: torch.Tensor | None = None
    """The norm of its change divided by its norm, on its device."""
    update: float | None = None

    def read(self) -> None:
        """Read the change; NaN means a parameter that was zero and stayed zero."""
        if self.change is not None:
            change = float(self.change)
            self.update = None if change != change else change

    def seen(self) -> ParameterSeen:
        """Return the public form."""
        gradient = None if self.gradient is None else self.gradient.known
        return ParameterSeen(
            self.name,
            tuple(self.tensor.shape),
            self.tensor.dtype,
            self.trainable,
            self.reached,
            self.value.known,
            gradient,
            self.update,
        )


class Record:
    """All observations, in the order of time."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.trouble: list[str] = []
        self.measured: list[Measured] = []
        self._modules: dict[str, tuple[nn.Module, tuple[str, ...]]] = {}
        self._hidden: list[Hidden] = []
        self._parameters: list[ParameterRecord] = []
        self._buffers: list[ParameterRecord] = []
        self._calls: dict[str, list[CallRecord]] = {}
        self._events: list[tuple[str, CallRecord]] = []
        self._gradients: list[tuple[CallRecord | ParameterRecord, Measured, int]] = []

    # --- called by the hooks ---

    def add_module(self, name: str, module: nn.Module, also: tuple[str, ...]) -> None:
        """Add a module."""
        self._modules[name] = (module, also)

    def hide(self, name: str, border: Hidden) -> None:
        """Add a part of the model that hooks cannot see."""
        self._hidden.append(Hidden(name, border.why, border.modules))

    def add_parameter(self, name: str, parameter: torch.Tensor) -> ParameterRecord:
        """Add a parameter, and measure its values before the step."""
        record = ParameterRecord(name, parameter, parameter.requires_grad, Measured(parameter))
        self.measured.append(record.value)
        self._parameters.append(record)
        return record

    def add_buffer(self, name: str, buffer: torch.Tensor) -> None:
        """Add a buffer, and measure its values before the step."""
        record = ParameterRecord(name, buffer, False, Measured(buffer))
        self.measured.append(record.value)
        self._buffers.append(record)

    def began(self, call: CallRecord) -> None:
        """Record that a call began."""
        self._calls.setdefault(call.name, []).append(call)
        self._events.append(("in", call))

    def ended(self, call: CallRecord) -> None:
        """Record that a call returned."""
        self._events.append(("out", call))

    def flowed(self, values: Values, gradient: torch.Tensor) -> None:
        """Record the gradient of a module's output."""
        values.gradient = measured = Measured(gradient)
        self.measured.append(measured)
        assert values.call is not None
        self._gradients.append((values.call, measured, gradient.numel()))

    def gradient(self, record: ParameterRecord, gradient: torch.Tensor | None, used: bool) -> None:
        """Record the gradient of a parameter; one that an optimizer uses is kept until it uses another one."""
        if gradient is not None:
            measured = Measured(gradient)
            if used or not record.stepped:
                record.gradient = measured
            self.measured.append(measured)
            self._gradients.append((record, measured, gradient.numel()))

    @torch.no_grad()
    def moved(self, record: ParameterRecord, before: torch.Tensor, now: torch.Tensor) -> None:
        """Measure the change of a parameter in a step, relative to its norm."""
        wide = torch.complex64 if now.is_complex() else torch.float32
        old, new = before.to(now.device).to(wide), now.to(wide)
        record.change = torch.linalg.vector_norm(new - old) / torch.linalg.vector_norm(old)

    # --- for the user ---

    def write_into(self, seen: Inspection) -> None:
        """Read the measurements, and fill in an inspection."""
        seen.looked, seen.title = True, self.title
        try:
            read(self.measured)
            for record in self._parameters:
                record.read()
        except RuntimeError as error:  # the device failed earlier
            self.trouble.append(str(error))
        self.trouble += [measured.trouble for measured in self.measured if measured.trouble]
        seen.layers = tuple(
            Layer(name, calls[0].kind, calls[0].depth, self._modules[name][1], tuple(call.call() for call in calls))
            for name, calls in self._calls.items()
        )
        seen.parameters = tuple(record.seen() for record in self._parameters)
        seen.not_called = tuple(self._not_called())
        seen.hidden = tuple(self._hidden)
        seen.first_nan, seen.first_inf = self._first("NaN"), self._first("Inf")
        seen.trouble = sorted(set(self.trouble))
        if any(record.stepped for record in self._parameters):
            seen.gradients = "as the optimizer used them"
        elif any(record.reached for record in self._parameters):
            seen.gradients = "as the backward pass left them"

    def _not_called(self) -> Iterator[str]:
        """Yield the outermost modules with no submodule that was called and no parameter that was used."""
        reached = [record.name for record in self._parameters if record.reached]
        listed: list[str] = []
        for name, (module, _) in self._modules.items():
            inside = f"{name}." if name else ""
            used = any(other == name or other.startswith(inside) for other in self._calls)
            used = used or any(parameter.startswith(inside) for parameter in reached)
            if not used and not isinstance(module, _NEVER_CALLED):
                if not any(name.startswith(f"{outer}." if outer else "") for outer in listed):
                    listed.append(name)
                    yield name

    def _first(self, what: str) -> NotFinite | None:
        return self._first_in_forward(what) or self._first_in_backward(what) or self._first_held(what)

    def _first_in_forward(self, what: str) -> NotFinite | None:
        for way, call in self._events:
            bad = _bad(call.inputs if way == "in" else call.outputs, what)
            if bad is None:
                continue
            count, of = bad
            if way == "out":
                if _bad(call.inputs, what) is not None:
                    continue
                held = self._held_by(call.name, what)
                return held or _found(what, "output", call, count, of, f"in the output of {call.label}")
            if what == "Inf":
                continue  # such as a mask of -inf
            if call.parent is None:
                return _found(what, "input", call, count, of, f"in the input of {call.label}")
            text = f"in the forward of {call.parent.label}, before it called {call.label}"
            return _found(what, "inside", call.parent, count, of, text)
        return None

    def _first_in_backward(self, what: str) -> NotFinite | None:
        for whose, measured, of in self._gradients:
            count = _count(measured.known, what)
            if not count:
                continue
            if isinstance(whose, ParameterRecord):
                text = f"in the gradient of {whose.name}"
                return _found(what, "gradient", whose, count, of, text)
            maker = "the loss" if whose.parent is None else "the code that uses it"
            text = f"in the gradient of the output of {whose.label}, made by the backward pass of {maker}"
            return _found(what, "output gradient", whose, count, of, text)
        return None

    def _held_by(self, name: str, what: str) -> NotFinite | None:
        """Return the first non-finite parameter or buffer of a module itself; of a compiled one, of all inside it."""
        inside = f"{name}." if name else ""
        compiled = any(border.name == name for border in self._hidden)
        for record in (*self._parameters, *self._buffers):
            own = record.name.startswith(inside) and (compiled or "." not in record.name.removeprefix(inside))
            if own and (found := self._not_finite(record, what)) is not None:
                return found
        return None

    def _first_held(self, what: str) -> NotFinite | None:
        found = (self._not_finite(record, what) for record in self._parameters)
        return next((one for one in found if one is not None), None)

    def _not_finite(self, record: ParameterRecord, what: str) -> NotFinite | None:
        buffer = record in self._buffers
        count = _count(record.value.known, what)
        if not count or (buffer and what == "Inf"):
            return None
        where = "buffer" if buffer else "parameter"
        return _found(
            what, where, record, count, record.tensor.numel(), f"in the {where} {record.name} before the step"
        )


def _bad(held: list[tuple[str, Values]], what: str) -> tuple[int, int] | None:
    """Return the number of non-finite values in the first tensor that has any, and its size."""
    for _, values in held:
        count = _count(values.measured.known, what)
        if count:
            return count, torch.Size(values.shape).numel()
    return None


def _count(statistics: Statistics | None, what: str) -> int:
    if statistics is None:
        return 0
    return statistics.nans if what == "NaN" else statistics.infs


def _found(what: str, where: str, whose: CallRecord | ParameterRecord, count: int, of: int, text: str) -> NotFinite:
    kind_ = whose.kind if isinstance(whose, CallRecord) else ""
    return NotFinite(what, where, whose.name, kind_, count, of, f"first {what} {text}: {count:,} of {of:,} values")
