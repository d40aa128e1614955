"""Schedules of the learning rate: as they were asked for, beside the rates of the run.

Rates of the run are dots: a line between two sampled steps would leave the curve of a schedule that ran as asked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from truestep.accounts._account import place
from truestep.events import SchedulerBuilt
from truestep.findings import Summary
from truestep.report.page.pictures.curves import Chart, Series, chart
from truestep.timeline import Curve, Timeline

_MOST = 4
"""Schedules of a run that are shown."""
_FAR = 1.02
"""Ratio of two ends from which both are marked."""
_CROWDED = 20.0
"""Most lengths of a run to which a schedule is drawn."""


def schedule_charts(runs: Sequence[tuple[str, Summary]]) -> list[Chart]:
    """Return a chart for each schedule that ran alone on its optimizer, from its start.

    Args:
        runs: each with its name; the name is empty for a single run.
    """
    return [one for name, summary in runs if summary.timeline is not None for one in _charts(name, summary.timeline)]


def _charts(name: str, timeline: Timeline) -> Iterator[Chart]:
    stepped = timeline.schedule_steps()
    built = [timeline.objects.schedulers[number] for number in stepped if number in timeline.objects.schedulers]
    owners = Counter(one.optimizer for one in built)
    alone = [one for one in built if owners[one.optimizer] == 1 and one.scheduler not in timeline.moved]
    for one in alone[:_MOST]:
        rates = timeline.curves.get(Curve("rate", one.optimizer or 0, None, 0), [])
        if len(one.asked_steps) > 1 and len(rates) > 1 and timeline.step:
            yield _chart(name, one, rates, stepped[one.scheduler], timeline.step)


def _chart(name: str, built: SchedulerBuilt, rates: Sequence[tuple[int, float]], stepped: int, steps: int) -> Chart:
    """Return the chart of a schedule; a step of it stands for as many steps of the run as in the mean."""
    distance = steps / stepped
    end = None if built.horizon is None else built.horizon * distance
    last = max(steps, min(end or 0.0, _CROWDED * steps))
    asked = _stairs(built, distance, last)
    marks = []
    if end is not None and steps > _FAR * end:
        marks.append(("end of the schedule", round(end)))
    elif end is not None and end > _FAR * steps:
        marks.append(("end of the run", steps))
    where = place(built.site)
    each = f", one for {distance:,.3g} updates" if round(distance) > 1 else ""
    cut = f", drawn to {_CROWDED:.0f} lengths of the run" if end is not None and end > _CROWDED * steps else ""
    prefix = f"{name}: " if name else ""
    return chart(
        "schedule",
        f"{prefix}{built.kind}, as asked and as run",
        f"learning rate of the schedule at {where}; the run took {_taken(stepped, built.horizon)}{each}{cut}",
        [Series("as run", rates, dots=True), Series("as asked", asked, dashed=True)],
        marks,
    )


def _taken(stepped: int, horizon: int | None) -> str:
    if not horizon:
        return f"{stepped:,} steps of it"
    return (
        f"{stepped:,} of its {horizon:,} steps" if stepped <= horizon else f"{stepped:,} steps, and it has {horizon:,}"
    )


def _asked(built: SchedulerBuilt) -> list[tuple[int, float]]:
    """Return positions and rates of the plan; it ends with the schedule unless the last rate is kept from there on.

    After its end, the formula of a cosine goes on in waves.
    """
    plan = list(zip(built.asked_steps, built.asked_rates, strict=True))
    until = [one for one in plan if built.horizon is None or one[0] <= built.horizon]
    if not until or all(math.isclose(rate, until[-1][1]) for _, rate in plan[len(until) :]):
        return plan
    return until


def _stairs(built: SchedulerBuilt, distance: float, last: float) -> list[tuple[int, float]]:
    """Return the plan over the steps of the run: a rate holds until the next step of the schedule."""
    plan = _asked(built)
    found: list[tuple[int, float]] = []
    for (position, rate), (following, after) in pairwise([*plan, (plan[-1][0] + 1, plan[-1][1])]):
        begin, end = position * distance, following * distance
        if begin > last:
            break
        found.append((round(begin), rate))
        if following == position + 1 and distance >= 2:
            found.append((round(min(last, end - 1)), rate))
        elif end > last:  # the plan goes on: its value at the end of the picture, between two positions
            found.append((round(last), rate + (after - rate) * (last - begin) / (end - begin)))
    return sorted(set(found))
