"""The course of a run for pictures: its first steps, a typical one, values that were read, and counts by line.

A `Timeline` reads the same chunks as the record of a run, live or from the file, and its size is bounded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from truestep import events as ev
from truestep.accounts import Objects
from truestep.events import Event, LayersMeasured, Site

Key = tuple[int, int]
CountKey = tuple[str, Site, str]
"""Name of an event, its line, and a detail such as the mode that was set."""

_OPENING = 12
"""Chunks from the start of the run that are kept."""
_LONGEST_ROUND = 4
"""Most steps of a round that is shown as a whole."""
_MOST_POINTS = 2048
_MOST_CURVES = 64
_MOST_MARKS = 16
_MOST_READINGS = 64
"""Readings of the layers that are kept for an optimizer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The events between two steps."""

    step: int
    """Number of steps before."""
    events: tuple[Event, ...]
    times: int = 1
    """Number of times that they came after the same events in this order."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values that were read during a run."""

    subject: str
    """"loss", "rate", "update", "mixture", "window", "figure" or "evaluation loss"."""
    number: int
    """The optimizer; 0 for losses and figures."""
    site: Site | None = None
    """Line of the backward pass of a loss."""
    group: int = 0
    """Parameter group of a learning rate."""
    name: str = ""
    """Name of a figure or of the loss of an evaluation, such as "accuracy"."""


@dataclass(slots=True)
class _Transition:
    events: tuple[Event, ...]
    step: int
    steps: int
    times: int = 0


class Timeline:
    """Follows the chunks of a run.

    Args:
        read_at: time in seconds since 1970 at which the source files were those of the run; 0 if unknown.
    """

    def __init__(self, read_at: float = 0.0) -> None:
        self.read_at = read_at
        self.objects = Objects()
        self.step = 0
        """Number of steps so far."""
        self.opening: list[Passage] = []
        """The first chunks."""
        self.curves: dict[Curve, list[tuple[int, float]]] = {}
        """Values in the order of their steps."""
        self.marks: list[tuple[int, Site | None, str]] = []
        """Step, line and value of the first losses that were not finite."""
        self.layers: dict[int, list[tuple[int, LayersMeasured]]] = {}
        """Optimizer to the sizes of its gradients and updates, with their step."""
        self.pace: ev.PaceRead | None = None
        """Time and memory at sampled steps."""
        self.moved: set[int] = set()
        """Schedules that were elsewhere than after their steps, as in a resumed run."""
        self._transitions: dict[Key, _Transition] = {}
        self._schedules: Counter[int] = Counter()
        self._counts: Counter[CountKey] = Counter()
        self._typical: list[_Transition] = []
        self._strides: dict[Curve, tuple[int, int]] = {}
        """Curve to the distance of the readings that are kept, and the number of readings."""

    def show(self, number: int, events: tuple[Event, ...], key: Key, *, fired: bool = False) -> None:
        """Read a chunk of the run."""
        if len(self.opening) < _OPENING:
            self.opening.append(Passage(self.step, events))
        transition = self._transitions.get(key)
        if transition is None:
            transition = self._transitions[key] = _Transition(events, self.step, 0)
        transition.times += 1
        before = self.step
        for event in events:
            self.objects.note(event)
            self._read(event)
            if isinstance(event, ev.OptimizerStepped | ev.HandStepped):
                self.step += 1
        transition.steps = self.step - before

    def again(self, key: Key, times: int) -> None:
        """Count a chunk that was read before."""
        transition = self._transitions.get(key)
        if transition is not None:
            transition.times += times
            self.step += transition.steps * times

    def forget(self) -> None:
        """Add the counts up, since the numbers of chunks start again."""
        self._settle(self._counts)
        self._schedules = self.schedule_steps()
        self._typical = self._round()
        self._transitions.clear()

    def typical(self) -> list[Passage]:
        """Return the most frequent steps: one, or the round of several optimizers; empty if no step came again."""
        return [Passage(one.step, one.events, one.times) for one in self._round()]

    def counts(self) -> Counter[CountKey]:
        """Return the number of times that an operation ran at a line."""
        counts = self._counts.copy()
        self._settle(counts)
        return counts

    def schedule_steps(self) -> Counter[int]:
        """Return the number of steps of each schedule."""
        steps = self._schedules.copy()
        for transition in self._transitions.values():
            for event in transition.events:
                if isinstance(event, ev.SchedulerStepped):
                    steps[event.scheduler] += transition.times
        return steps

    def _round(self) -> list[_Transition]:
        stepped = {key: one for key, one in self._transitions.items() if one.steps and one.times > 1}
        if not stepped:
            return self._typical
        start = max(stepped, key=lambda key: stepped[key].times)
        if self._typical and self._typical[0].times >= stepped[start].times:
            return self._typical
        found = [start]
        while found[-1][1] != start[0] and len(found) < _LONGEST_ROUND:
            following = [
                key for key in stepped if key[0] == found[-1][1] and 2 * stepped[key].times > stepped[start].times
            ]
            if not following:
                return [stepped[start]]
            found.append(max(following, key=lambda key: stepped[key].times))
        if found[-1][1] != start[0]:
            return [stepped[start]]
        # Each chunk has one step, so the first one of the round is known by the number of steps before it.
        first = min(range(len(found)), key=lambda place: stepped[found[place]].step % len(found))
        return [stepped[key] for key in (*found[first:], *found[:first])]

    def _settle(self, counts: Counter[CountKey]) -> None:
        for transition in self._transitions.values():
            for event in transition.events:
                key = _counted(event, self.objects)
                if key is not None:
                    counts[key] += transition.times

    def _read(self, event: Event) -> None:
        match event:
            case ev.LossRead():
                self._add(Curve("loss", 0, event.site), event.value)
            case ev.LearningRateRead():
                for group, rate in enumerate(event.rates):
                    self._add(Curve("rate", event.optimizer, None, group), rate)
            case ev.UpdateMeasured():
                self._add(Curve("update", event.optimizer), event.ratio)
            case ev.MixtureMeasured():
                self._add(Curve("mixture", event.optimizer), event.ratio)
            case ev.WindowMeasured():
                self._add(Curve("window", event.optimizer), event.ratio)
            case ev.FigureRead() if event.batches or "/" not in event.name:  # a sum may be cleared before it is read
                self._add(Curve("figure", 0, None, 0, event.label or event.name), event.value)
            case ev.EvaluationLossRead():
                self._add(Curve("evaluation loss", 0, None, 0, event.name), event.value)
            case ev.LayersMeasured():
                readings = self.layers.setdefault(event.optimizer, [])
                readings.append((self.step, event))
                if len(readings) > _MOST_READINGS:
                    del readings[1::2]
            case ev.PaceRead():
                self.pace = event
            case ev.ScheduleMoved() | ev.SchedulerStepped(epoch_argument=True):
                self.moved.add(event.scheduler)
            case ev.LossNotFinite() if len(self.marks) < _MOST_MARKS:
                self.marks.append((self.step, event.site, event.value))

    def _add(self, curve: Curve, value: float) -> None:
        points = self.curves.get(curve)
        if points is None:
            if len(self.curves) >= _MOST_CURVES:
                return
            points = self.curves[curve] = []
        stride, readings = self._strides.get(curve, (1, 0))
        if readings % stride == 0:
            points.append((self.step, value))
        if len(points) >= _MOST_POINTS:
            del points[1::2]
            stride *= 2
        self._strides[curve] = stride, readings + 1


def _counted(event: Event, objects: Objects) -> CountKey | None:
    """Return the line and the detail by which an event is counted; None for events that accounts count."""
    site: Site | None = getattr(event, "site", None)
    if site is None:
        return None
    match event:
        case ev.ModeSet():
            detail = "train" if event.training else "eval"
        case ev.GradientsZeroed():
            detail = objects.optimizer_name(event.optimizer) if event.optimizer else objects.model_name(event.model)
        case ev.GradientsClipped():
            detail = f"{event.kind} {event.max_norm:g}"
        case ev.SchedulerStepped():
            built = objects.schedulers.get(event.scheduler)
            detail = "schedule" if built is None else built.kind
        case ev.LossComputed():
            detail = event.kind
        case ev.Seeded() | ev.GradientsUnscaled() | ev.GradientsTaken() | ev.CollectiveCalled():
            detail = ""
        case _:
            return None
    return type(event).__name__, site, detail
