"""Read the record of torch's profiler over some steps: modules, operations with their lines, memory."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from truestep.debugging.timings import BETWEEN, MODULE, EventPlace, Timings
from truestep.experiments.instruments.profiling.marks import Marks
from truestep.experiments.instruments.profiling.memory import Allocation, Timeline, allocations
from truestep.experiments.instruments.profiling.sampler import CodeLine, Sample

_OPERATIONS = 40
_OWNERS = 12
_NONE = EventPlace("", ())


class ProfilerRecord:
    """The steps that were profiled.

    Args:
        profiler: torch's profiler, stopped.
        marks: names of modules.
        ends: start of the first step and end of each, by `time.perf_counter`; each has a mark in the profile.
        evaluations: spans outside of steps, by the same clock.
        samples: samples of the thread taken during the profile.
    """

    def __init__(
        self,
        profiler: Any,
        marks: Marks,
        ends: Sequence[float],
        evaluations: Iterable[tuple[float, float]],
        samples: Iterable[Sample],
    ) -> None:
        events = list(profiler.events() or ())
        between = [event for event in events if event.name == BETWEEN]
        self._marks = marks
        self._ends = [event.time_range.end for event in between]
        shift = median(mark.time_range.start - 1e6 * end for mark, end in zip(between, ends, strict=False))
        self._evaluated = evaluated = sorted((1e6 * start + shift, 1e6 * end + shift) for start, end in evaluations)
        spans = _without(self._ends[0], self._ends[-1], evaluated)
        self.timings = Timings(events, marks.kinds, spans=spans, steps=len(self._ends) - 1)
        self._places = self.timings.places()
        self._events = events
        self._results = profiler.profiler.kineto_results
        self._thread = between[0].thread
        self._numbers = self._number()
        self._votes: defaultdict[tuple[str, str, str, int], Counter[CodeLine]] = defaultdict(Counter)
        self._vote([(1e6 * sample.time + shift, sample) for sample in samples if sample.lines])

    def modules(self) -> list[dict[str, Any]]:
        """Return the modules of a step, parents before children."""
        return [
            {
                "name": module.name,
                "kind": module.kind,
                "depth": module.depth,
                "calls": module.calls,
                "forward_ms": module.forward_ms,
                "backward_ms": module.backward_ms,
                "own_forward_ms": module.own_forward_ms,
                "own_backward_ms": module.own_backward_ms,
                "device_ms": module.device_ms,
                "at": self._marks.at.get(f"{MODULE}{module.name}"),
            }
            for module in self.timings.modules()
        ]

    def operations(self) -> list[dict[str, Any]]:
        """Return the operations of a step by phase, the slowest first, each with its shapes and lines."""
        found: dict[tuple[str, str], dict[str, Any]] = {}
        for event in self.timings.own_operations():
            place = self._places.get(id(event), _NONE)
            entry = found.setdefault(
                (event.name, place.phase or "other"),
                {
                    "calls": 0,
                    "us": 0.0,
                    "device_us": 0.0,
                    "shapes": Counter(),
                    "lines": Counter(),
                    "modules": Counter(),
                },
            )
            spent = event.self_cpu_time_total
            device = sum(kernel.duration for kernel in event.kernels)
            entry["calls"] += 1
            entry["us"] += spent
            entry["device_us"] += device
            weight = device or spent
            entry["shapes"][_shapes(event)] += weight
            entry["modules"][_module(place)] += weight
            entry["lines"][self.line(event)] += weight
        steps = self.timings.steps
        ordered = sorted(found.items(), key=lambda item: (item[1]["device_us"], item[1]["us"]), reverse=True)
        return [
            {
                "name": name,
                "phase": phase,
                "calls": entry["calls"] / steps,
                "ms": entry["us"] / 1000 / steps,
                "device_ms": entry["device_us"] / 1000 / steps,
                "shapes": _most(entry["shapes"], ""),
                "module": _most(entry["modules"], ""),
                "line": _most(entry["lines"], None),
            }
            for (name, phase), entry in ordered[:_OPERATIONS]
        ]

    # --- lines -------------------------------------------------------------------------------------------------

    def line(self, event: Any) -> CodeLine | None:
        """Return the user's line that called an operation; None if unknown.

        An operation of the backward pass gets the line of its operation in the forward pass. Inside a module of a
        library it is the line that called the module; elsewhere, the line with the most samples of the thread in it.
        """
        place = self._places.get(id(event), _NONE)
        if place.phase == "backward":
            return self.line(place.made_by) if place.made_by is not None else None
        inner = place.modules[-1] if place.modules else ""
        if inner and inner not in self._marks.own:
            path, number = self._marks.at.get(inner, ("", 0))
            return (path, number, "") if path else None
        above = event
        while above is not None and not above.name.startswith(MODULE):
            for number in (self._numbers.get(id(above), 0), 0):
                seen = self._votes.get((place.phase, inner, above.name, number))
                if seen:
                    return seen.most_common(1)[0][0]
            above = above.cpu_parent
        return None

    def _number(self) -> dict[int, int]:
        """Return the number of each event among those of its name in its step, phase and module."""
        found: dict[int, int] = {}
        counted: Counter[tuple[str, str, str]] = Counter()
        ends = list(self._ends)
        for event in sorted(self._events, key=lambda event: event.time_range.start):
            while ends and event.time_range.start >= ends[0]:
                ends.pop(0)
                counted.clear()
            place = self._places.get(id(event), _NONE)
            key = (place.phase, place.modules[-1] if place.modules else "", event.name)
            counted[key] += 1
            found[id(event)] = counted[key]
        return found

    def _vote(self, looks: list[tuple[float, Sample]]) -> None:
        for event, sample in self._at([time for time, _ in looks], [sample for _, sample in looks], self._thread):
            place = self._places.get(id(event), _NONE)
            inner = place.modules[-1] if place.modules else ""
            above = event
            while above is not None and not above.name.startswith(MODULE):
                for number in (self._numbers.get(id(above), 0), 0):
                    self._votes[place.phase, inner, above.name, number][sample.lines[0]] += sample.seconds
                above = above.cpu_parent

    def _at(self, times: Sequence[float], things: Sequence[Any], thread: int) -> Iterator[tuple[Any, Any]]:
        """Yield the innermost event of a thread at each of some times, with the thing of that time."""
        events = [e for e in self._events if e.thread == thread and str(e.device_type).endswith("CPU")]
        events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
        order = sorted(range(len(times)), key=times.__getitem__)
        open_events: list[Any] = []
        number = 0
        for index in order:
            time = times[index]
            while number < len(events) and events[number].time_range.start <= time:
                open_events.append(events[number])
                number += 1
                if number % 64 == 0:
                    open_events = [event for event in open_events if event.time_range.end >= time]
            open_events = [event for event in open_events if event.time_range.end >= time]
            if open_events:
                yield open_events[-1], things[index]

    # --- memory ------------------------------------------------------------------------------------------------

    def memory(self, before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
        """Return the memory between steps, over one step, and at the peak by line and module.

        Args:
            before: result of `held` at the start of the profiler.
            after: result of `held` at its end.
        """
        noted = allocations(self._results.experimental_event_tree())
        if not noted or self.timings.steps < 1:
            return {}
        device = max(noted, key=lambda name: (name != "cpu", sum(note.size for note in noted[name] if note.size > 0)))
        kept = set(before["where"]) & set(after["where"])
        in_place = sum(after["where"][address] for address in kept)
        base = after["parameters"] + after["optimizer"] + in_place if device == "cpu" else None
        origin = self._results.trace_start_ns()
        ends = [int(origin + 1000 * end) for end in self._ends]
        lines = [Timeline(noted[device], start, end, base) for start, end in pairwise(ends)]
        # The profiler does not see the release of gradients from before its start: the first step is left out.
        own = lines[1:] or lines
        peak = max(own, key=lambda line: line.peak)
        number = lines.index(peak)
        where = self._where_of(list(peak.living.values()), origin)
        return {
            "device": device,
            "parameters": after["parameters"],
            "gradients": after["gradients"],
            "optimizer": after["optimizer"],
            "peak": peak.peak,
            "between": [line.last for line in lines],
            "curve": peak.curve(ends[number], ends[number + 1]),
            "phases": self._phases_of(ends[number], ends[number + 1], origin),
            "at": (peak.at - ends[number]) / max(1, ends[number + 1] - ends[number]),
            "at_phase": self._where_of([Allocation(peak.at, noted[device][0].thread, 0, 0, 0)], origin).get(0, {}),
            "owners": [
                {"bytes": size, **dict(where_)} for where_, size in peak.owners(lambda n: _key(where.get(n.address)))
            ][:_OWNERS],
            "allocated": sum(note.size for note in noted[device] if note.size > 0) / self.timings.steps,
        }

    def _where_of(self, notes: Sequence[Allocation], origin: int) -> dict[int, dict[str, Any]]:
        """Return the places of allocations by address."""
        found: dict[int, dict[str, Any]] = {}
        for thread in {note.thread for note in notes}:
            own = [note for note in notes if note.thread == thread]
            for event, note in self._at([(note.time - origin) / 1000 for note in own], own, thread):
                place = self._places.get(id(event), _NONE)
                found[note.address] = {
                    "phase": self._phase(event, place),
                    "module": _module(place),
                    "operation": event.name,
                    "line": self.line(event),
                }
        return found

    def _phase(self, event: Any, place: EventPlace) -> str:
        if any(start <= event.time_range.start < end for start, end in self._evaluated):
            return "evaluation"
        return place.phase or "other"

    def _phases_of(self, start: int, end: int, origin: int) -> list[tuple[float, float, str]]:
        """Return begin, end and name of the phases of one step, in order; times as fractions of the step."""
        found: list[tuple[float, float, str]] = []
        low, high = (start - origin) / 1000, (end - origin) / 1000
        for event in sorted(self._events, key=lambda event: event.time_range.start):
            place = self._places.get(id(event))
            time = event.time_range
            if place is None or not place.phase or event.thread != self._thread or not low <= time.start < high:
                continue
            begin, over = (time.start - low) / (high - low), min(1.0, (time.end - low) / (high - low))
            if found and found[-1][2] == place.phase:
                found[-1] = (found[-1][0], max(over, found[-1][1]), place.phase)
            else:
                found.append((begin, over, place.phase))
        return found


def _without(start: float, end: float, holes: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the parts of a time span that lie outside of the holes."""
    found: list[tuple[float, float]] = []
    for begin, over in holes:
        if over <= start or begin >= end:
            continue
        if begin > start:
            found.append((start, begin))
        start = max(start, over)
    return [*found, (start, end)] if start < end else found


def _module(place: EventPlace) -> str:
    return place.modules[-1].removeprefix(MODULE) if place.modules else ""


def _shapes(event: Any) -> str:
    return " ".join("x".join(map(str, shape)) for shape in event.input_shapes or () if shape)


def _most(counted: Counter[Any], none: Any) -> Any:
    known = [(thing, weight) for thing, weight in counted.most_common() if thing]
    return known[0][0] if known else none


def _key(where: dict[str, Any] | None) -> tuple[tuple[str, Any], ...]:
    where = where or {"phase": "other", "module": "", "operation": "", "line": None}
    return tuple((name, where[name]) for name in ("phase", "module", "line"))
