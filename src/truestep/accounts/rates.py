"""The account of the learning rates: those that the steps used, by optimizer, and the schedules that set them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from truestep import events as ev
from truestep.accounts._account import Account, Entry, amount, line_of, place
from truestep.accounts.run_objects import Objects
from truestep.events import Event, Site

_Key = tuple[str, int, Site | None]
""""update" of an optimizer, or "schedule" with the line of its step."""
_MOST = 32
"""Segments of an optimizer that are kept."""


@dataclass(slots=True)
class Segment:
    """Learning rates that were read at one or several steps in a row."""

    update: int
    """Number of updates of the optimizer before the first of these steps."""
    rates: tuple[float, ...]
    steps: int = 0
    """Number of these steps; 0 for rates that were only read at the end."""
    until: int = 0
    """Number of updates before the last of these steps."""


@dataclass(slots=True)
class RateLine:
    """The optimizers of one kind that were built at one line."""

    kind: str
    site: Site | None
    optimizers: list[int] = field(default_factory=list)
    updates: int = 0
    first: tuple[float, ...] = ()
    last: tuple[float, ...] = ()
    least: float = 0.0
    most: float = 0.0
    schedules: dict[int, ev.SchedulerBuilt] = field(default_factory=dict)

    @property
    def constant(self) -> bool:
        """Return True if all rates that were read are those at first."""
        return self.first == self.last and self.least == min(self.first) and self.most == max(self.first)


class Rates(Account[_Key]):
    """Follows the learning rate of each optimizer."""

    name = "rate"

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.segments: dict[int, list[Segment]] = {}
        """Optimizer to its learning rates, as they were read at sampled steps."""
        self.written: dict[int, Site] = {}
        """Optimizer to the only line that assigns its learning rate in the file of its step."""
        self._extremes: dict[int, tuple[float, float]] = {}
        self._read_last: dict[int, Segment] = {}
        """Optimizer to the segment of the learning rates that its next step uses."""

    def note(self, event: Event) -> None:
        """Enter an event."""
        match event:
            case ev.OptimizerStepped():
                self.tally.add(("update", event.optimizer, None))
                if (segment := self._read_last.pop(event.optimizer, None)) is not None:
                    segment.steps += 1
                    segment.until = self.updates(event.optimizer) - 1
            case ev.SchedulerStepped():
                self.tally.add(("schedule", event.scheduler, event.site))
            case ev.LearningRateRead(rates=rates) if rates:
                self._read(event)

    def _read(self, event: ev.LearningRateRead) -> None:
        number, rates = event.optimizer, event.rates
        least, most = self._extremes.get(number, (rates[0], rates[0]))
        self._extremes[number] = min(least, *rates), max(most, *rates)
        segments = self.segments.setdefault(number, [])
        if not segments or segments[-1].rates != rates:
            if len(segments) == _MOST:
                del segments[-1]
            segments.append(Segment(self.updates(number), rates))
        self._read_last[number] = segments[-1]
        if event.site is not None:
            self.written[number] = event.site

    def updates(self, optimizer: int) -> int:
        """Return the number of steps of an optimizer."""
        return self.tally["update", optimizer, None]

    def used(self, optimizer: int) -> list[Segment]:
        """Return the learning rates of an optimizer that were read at its steps."""
        return [segment for segment in self.segments.get(optimizer, ()) if segment.steps]

    def scheduled(self) -> dict[int, int]:
        """Return the number of steps of each schedule, 0 for one that was only built."""
        counts = dict.fromkeys(self.objects.schedulers, 0)
        for key in self.tally:
            if key[0] == "schedule":
                counts[key[1]] = counts.get(key[1], 0) + self.tally[key]
        return counts

    def lines(self) -> list[RateLine]:
        """Return the learning rates of the optimizers that stepped, the line with the most updates first."""
        lines: dict[tuple[str, Site | None], RateLine] = {}
        for number, built in self.objects.optimizers.items():
            segments, updates = self.segments.get(number), self.updates(number)
            if not segments or not updates:
                continue
            line = lines.setdefault((built.kind, built.site), RateLine(built.kind, built.site))
            least, most = self._extremes[number]
            if not line.optimizers:
                line.first, line.least, line.most = segments[0].rates, least, most
            line.optimizers.append(number)
            line.last, line.updates = segments[-1].rates, line.updates + updates
            line.least, line.most = min(line.least, least), max(line.most, most)
        owners = {number: line for line in lines.values() for number in line.optimizers}
        for scheduler, schedule in self.objects.schedulers.items():
            owner = owners.get(schedule.optimizer or 0)
            if owner is not None:
                owner.schedules[scheduler] = schedule
        return sorted(lines.values(), key=lambda line: -line.updates)

    def entry(self) -> Entry | None:
        """Return the rates of the optimizer with the most steps, and how many others there were."""
        lines = self.lines()
        if not lines:
            return None
        counts = self.scheduled()
        text = self._text(lines[0], counts)
        if len(lines) > 1:
            text += _other(lines[0], lines[1]) if len(lines) == 2 else f"; {len(lines) - 1} other optimizers"
        return Entry(text, {"lines": [self._facts(line, counts) for line in lines]})

    def _text(self, line: RateLine, counts: dict[int, int]) -> str:
        stepped = [one for number, one in line.schedules.items() if counts.get(number)]
        idle = [one for number, one in line.schedules.items() if not counts.get(number)]
        text = _range(line)
        if stepped:
            where = f" ({place(stepped[-1].site)})" if stepped[-1].site else ""
            text += f" by {stepped[-1].kind}{where}"
        elif idle:
            text += f", {idle[-1].kind} never stepped" + (f" ({place(idle[-1].site)})" if idle[-1].site else "")
        else:
            text += ", no schedule" if line.constant else ", set by the script"
        if len(line.optimizers) > 1:
            text += f", {amount(len(line.optimizers), 'optimizer')}"
        return text

    def _facts(self, line: RateLine, counts: dict[int, int]) -> dict[str, object]:
        segments = self.segments[line.optimizers[0]]
        return {
            "kind": line.kind,
            "site": line_of(line.site),
            "optimizers": len(line.optimizers),
            "updates": line.updates,
            "first": list(line.first),
            "last": list(line.last),
            "least": line.least,
            "most": line.most,
            "segments": [{"update": segment.update, "rates": list(segment.rates)} for segment in segments],
            "schedules": [
                {"kind": schedule.kind, "site": line_of(schedule.site), "steps": counts.get(number, 0)}
                for number, schedule in line.schedules.items()
            ],
        }


def _other(first: RateLine, other: RateLine) -> str:
    """Return the rates of a second optimizer, as text after those of the first one."""
    rates = "the same" if _range(other) == _range(first) and not (first.schedules or other.schedules) else _range(other)
    where = f" ({place(other.site)})" if other.kind == first.kind and other.site else ""
    return f"; {rates} for {other.kind}{where}"


def _range(line: RateLine) -> str:
    """Return the course of the rates in a few words."""
    first, last = _number(line.first), _number(line.last)
    if line.constant:
        return f"{first} throughout"
    text = first if first == last else f"{first} to {last}"
    outside = []
    if line.most > max(*line.first, *line.last):
        outside.append(f"at most {line.most:.3g}")
    if line.least < min(*line.first, *line.last):
        outside.append(f"at least {line.least:.3g}")
    return text + (f" ({', '.join(outside)})" if outside else "")


def _number(rates: Iterable[float]) -> str:
    """Return learning rates, those of all groups if they differ.

    >>> _number((0.1, 0.1)), _number((0.1, 0.01))
    ('0.1', '0.1 and 0.01')
    """
    distinct = [f"{rate:.3g}" for rate in dict.fromkeys(rates)]
    if len(distinct) > 3:
        return f"{min(rates):.3g} ... {max(rates):.3g}"
    return " and ".join(distinct)
