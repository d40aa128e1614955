"""Times of steps from the events of torch's profiler: by phase, by module, by operation.

The backward pass has no marks. Its functions have the sequence number of their operation in the forward pass, which
assigns their time to modules; as a phase, it lasts from the first to the last function of an uninterrupted series.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

STEP, DATA, MODULE = "truestep: step", "truestep: data", "forward: "
BETWEEN = "truestep: between two steps"
"""A mark of zero length, for callers that cannot enclose a step."""
_ENGINE = "autograd::engine::evaluate_function: "
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")
_NO_OPERATION = (
    STEP,
    DATA,
    BETWEEN,
    MODULE,
    _ENGINE,
    *_OPTIMIZER,
    "profiler::",
    "ProfilerStep",
    "enumerate(DataLoader)",
)
_BACKWARD_FUNCTION = 1
"""Scope of an event that is a function of the autograd graph, around the operations that it calls."""
_RANGE = 7
"""Scope of an event of `record_function`."""
PHASES = ("data", "forward", "backward", "optimizer", "loss, other")


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """A phase of the mean step.

    Attributes:
        name: "data", "forward", "backward", "optimizer" or "loss, other".
        ms: milliseconds of CPU time.
        share: share of the step, in [0, 1].
        device_ms: milliseconds of kernels that it started; None if no device was used.
    """

    name: str
    ms: float
    share: float
    device_ms: float | None = None


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """A module in the mean step, including its submodules.

    Attributes:
        name: its name in the model; "(model)" is the model itself.
        kind: the name of its class.
        depth: number of modules around it.
        calls: calls per step.
        forward_ms: milliseconds of CPU time.
        backward_ms: milliseconds of the functions of the backward pass that belong to its operations.
        share: share of forward and backward in the step, in [0, 1].
        device_ms: milliseconds of kernels, forward and backward; None if no device was used.
        own_forward_ms: `forward_ms` without the submodules.
        own_backward_ms: `backward_ms` without the submodules.
    """

    name: str
    kind: str
    depth: int
    calls: float
    forward_ms: float
    backward_ms: float
    share: float
    device_ms: float | None = None
    own_forward_ms: float = 0.0
    own_backward_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class OperationTime:
    """An operation in the mean step, without the operations that it calls.

    Attributes:
        name: its name, such as "aten::addmm".
        calls: calls per step.
        ms: milliseconds of CPU time.
        share: share of the step, in [0, 1].
        device_ms: milliseconds of kernels that it started; None if no device was used.
    """

    name: str
    calls: float
    ms: float
    share: float
    device_ms: float | None = None


@dataclass(frozen=True, slots=True)
class EventPlace:
    """The phase and modules of an event.

    Attributes:
        phase: "data", "forward", "backward", "optimizer"; "" elsewhere.
        modules: the marks of modules around it, outermost first; in the backward pass, those around `made_by`.
        made_by: the operation of the forward pass that an event of the backward pass belongs to.
    """

    phase: str
    modules: tuple[str, ...]
    made_by: Any = None


class Timings:
    """The events of whole steps.

    Args:
        events: the result of `torch.profiler.profile.events()`.
        kinds: the class of each module, by the name of its mark.
        whole: for each mark of a step, True if the body ended.
        spans: without such marks, the (begin, end) times of steps, in microseconds on the clock of the events.
        steps: the number of steps in `spans`.
    """

    def __init__(
        self,
        events: Iterable[Any],
        kinds: Mapping[str, str],
        whole: Iterable[bool] = (),
        *,
        spans: Iterable[tuple[float, float]] = (),
        steps: int = 0,
    ) -> None:
        listed = [event for event in events if str(event.device_type).endswith("CPU")]
        listed.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        marks = [event for event in listed if event.name in (STEP, BETWEEN)]
        ranges = [(m.time_range.start, m.time_range.end) for m, ended in zip(marks, whole, strict=False) if ended]
        self._spans = ranges or sorted(spans)
        self._all = listed
        self._events = [event for event in listed if self._is_in_step(event.time_range.start)]
        self._kinds = kinds
        self._thread = marks[0].thread if marks else None
        self._has_device = any(event.kernels for event in self._events)
        self.steps = steps or len(self._spans)
        """Number of whole steps."""
        self.step_ms = sum(end - start for start, end in self._spans) / 1000 / max(1, self.steps)
        """Milliseconds of the mean step."""

    def phases(self) -> tuple[PhaseTime, ...]:
        """Return the phases of the mean step."""
        if not self.steps:
            return ()
        spent: defaultdict[str, float] = defaultdict(float)
        device: defaultdict[str, float] = defaultdict(float)
        phase_of: dict[int, str] = {}
        for event in self._events:
            phase = phase_of.get(id(event.cpu_parent), "") or _phase(event.name)
            phase_of[id(event)] = phase
            device[phase or PHASES[-1]] += _kernels(event)
            if phase and phase != "backward" and not phase_of.get(id(event.cpu_parent)):
                spent[phase] += event.time_range.elapsed_us()
        spent["backward"] = self._backward_us(phase_of)
        spent[PHASES[-1]] = max(0.0, 1000 * self.step_ms * self.steps - sum(spent.values()))
        return tuple(
            PhaseTime(name, self._ms(spent[name]), self._share(spent[name]), self._device_ms(device[name]))
            for name in PHASES
        )

    def modules(self) -> tuple[ModuleTime, ...]:
        """Return the modules of the mean step."""
        if not self.steps:
            return ()
        around = self._modules_around(self._events)
        calls: Counter[str] = Counter()
        forward: defaultdict[str, float] = defaultdict(float)
        backward: defaultdict[str, float] = defaultdict(float)
        own: defaultdict[tuple[str, str], float] = defaultdict(float)
        device: defaultdict[str, float] = defaultdict(float)
        depths: dict[str, int] = {}
        made_by: dict[int, tuple[str, ...]] = {}
        for event in self._events:
            inside = around[id(event)]
            elapsed = event.time_range.elapsed_us()
            if event.name.startswith(MODULE):
                calls[event.name] += 1
                depths.setdefault(event.name, len(inside) - 1)
                own[event.name, "forward"] += elapsed
                if len(inside) > 1:
                    own[inside[-2], "forward"] -= elapsed
                if inside.count(event.name) == 1:
                    forward[event.name] += elapsed
            elif event.name.startswith(_ENGINE):
                inside = made_by.get(event.sequence_nr, ())
                for name in set(inside):
                    backward[name] += elapsed
                if inside:
                    own[inside[-1], "backward"] += elapsed
            elif inside and event.thread == self._thread and event.sequence_nr >= 0:
                made_by[event.sequence_nr] = inside  # autograd has the last operation with a number
            for name in set(inside):
                device[name] += _kernels(event) if not event.name.startswith(_ENGINE) else _all_kernels(event)
        return tuple(
            ModuleTime(
                name.removeprefix(MODULE),
                self._kinds.get(name, ""),
                depth,
                calls[name] / self.steps,
                self._ms(forward[name]),
                self._ms(backward[name]),
                self._share(forward[name] + backward[name]),
                self._device_ms(device[name]),
                self._ms(max(0.0, own[name, "forward"])),
                self._ms(own[name, "backward"]),
            )
            for name, depth in depths.items()
        )

    def operations(self) -> tuple[OperationTime, ...]:
        """Return the operations of the mean step, sorted by device time, then by CPU time, longest first."""
        calls: Counter[str] = Counter()
        spent: defaultdict[str, float] = defaultdict(float)
        device: defaultdict[str, float] = defaultdict(float)
        for event in self.own_operations():
            calls[event.name] += 1
            spent[event.name] += event.self_cpu_time_total
            device[event.name] += _kernels(event)
        order = sorted(calls, key=lambda name: (device[name], spent[name]), reverse=True)
        return tuple(
            OperationTime(
                name,
                calls[name] / self.steps,
                self._ms(spent[name]),
                self._share(spent[name]),
                self._device_ms(device[name]),
            )
            for name in order
        )

    def own_operations(self) -> Iterator[Any]:
        """Yield the events that are operations of torch, without marks and functions of the autograd graph."""
        for event in self._events:
            if event.scope not in (_BACKWARD_FUNCTION, _RANGE) and not event.name.startswith(_NO_OPERATION):
                yield event

    def places(self) -> dict[int, EventPlace]:
        """Return the place of each event by its id, also of events between steps."""
        around = self._modules_around(self._all)
        found: dict[int, EventPlace] = {}
        made_by: dict[int, EventPlace] = {}
        for event in self._all:
            outer = found.get(id(event.cpu_parent))
            phase = (outer.phase if outer is not None else "") or _phase(event.name)
            if event.name.startswith(_ENGINE):
                made = made_by.get(event.sequence_nr)
                place = EventPlace("backward", made.modules if made else (), made.made_by if made else None)
            elif phase == "backward" and outer is not None:
                place = EventPlace(phase, outer.modules, outer.made_by)
            else:
                place = EventPlace(phase, around[id(event)])
                if event.thread == self._thread and event.sequence_nr >= 0:
                    made_by[event.sequence_nr] = EventPlace(phase, place.modules, event)
            found[id(event)] = place
        return found

    def _is_in_step(self, time: float) -> bool:
        number = bisect_right(self._spans, time, key=lambda span: span[0]) - 1
        return number >= 0 and time < self._spans[number][1]

    def _modules_around(self, events: Iterable[Any]) -> dict[int, tuple[str, ...]]:
        """Return the marks of the modules around each event, outermost first."""
        around: dict[int, tuple[str, ...]] = {}
        for event in events:
            outer = around.get(id(event.cpu_parent), ())
            around[id(event)] = (*outer, event.name) if event.name.startswith(MODULE) else outer
        return around

    def _backward_us(self, phase_of: Mapping[int, str]) -> float:
        """Return the time of backward passes: series of their functions that no other phase interrupts."""
        rows: dict[int, list[float]] = defaultdict(list)
        row = 0
        for event in self._events:
            if event.name.startswith(_ENGINE):
                rows[row] += (event.time_range.start, event.time_range.end)
            elif phase_of[id(event)] not in ("", "backward") or event.name == STEP:
                row += 1
        return sum(max(times) - min(times) for times in rows.values())

    def _ms(self, microseconds: float) -> float:
        return microseconds / 1000 / self.steps

    def _share(self, microseconds: float) -> float:
        return self._ms(microseconds) / self.step_ms if self.step_ms else 0.0

    def _device_ms(self, microseconds: float) -> float | None:
        return self._ms(microseconds) if self._has_device else None


def _phase(name: str) -> str:
    if name == DATA:
        return "data"
    if name.startswith(MODULE):
        return "forward"
    if name.startswith(_ENGINE):
        return "backward"
    return "optimizer" if name.startswith(_OPTIMIZER) else ""


def _kernels(event: Any) -> float:
    return float(sum(kernel.duration for kernel in event.kernels))


def _all_kernels(event: Any) -> float:
    return _kernels(event) + sum(_all_kernels(child) for child in event.cpu_children)
