"""Alerts on the curves of a run: losses at chance, evaluations that got worse after their best one, and spikes."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from statistics import median

from truestep.findings import Summary
from truestep.report.page.lines import number
from truestep.timeline import Timeline

_LEAST_EVALUATIONS = 8
_WORSE = 0.05
"""Relative distance from the best value for a worse one."""
_AFTER = 0.25
"""Share of the evaluations after the best one."""
_LEAST_READINGS = 6
_SPIKE = 30.0
"""Ratio of a gradient to the median of its readings."""
_LONG = 100
"""Steps after which a loss should be better than that of a guess."""
_NO_BETTER = 0.97
_MOST = 8
_RISES = re.compile(r"acc|correct|right|hits|f1|auc|auroc|iou|dice|precision|recall", re.IGNORECASE)
"""Names of figures that are better if they are larger; a quotient without such a name may be a loss."""


def alerts(runs: Sequence[tuple[str, Summary]]) -> tuple[str, ...]:
    """Return sentences on the curves of the runs, each with its name; empty for a single run."""
    found = []
    for name, summary in runs:
        if summary.timeline is not None:
            sentences = [*_at_chance(summary), *_evaluations(summary.timeline), *_spikes(summary.timeline)]
            found += [f"{name}: {one}" if name else one for one in sentences[:_MOST]]
    return tuple(found)


def _at_chance(summary: Summary) -> Iterator[str]:
    """Yield the losses over classes that end a run at the value of a guess."""
    timeline = summary.timeline
    facts = next((line.facts for line in summary.ledger if line.account == "loss"), {})
    for line in facts.get("lines", ()):
        chance, site = line["chance"], line["site"]
        if chance is None or site is None or timeline is None or timeline.step < _LONG:
            continue
        points = next(
            (points for curve, points in timeline.curves.items() if curve.subject == "loss"
             and curve.site is not None and (curve.site.path, curve.site.line) == (site["path"], site["line"])),
            [],
        )  # fmt: skip
        late = [value for step, value in points if step >= timeline.step / 10]
        if len(late) >= 3 and all(math.isfinite(value) and value > _NO_BETTER * chance for value in late):
            last = number(sum(late) / len(late))
            where = f"{os.path.basename(site['path'])}:{site['line']}"
            yield (
                f"loss at chance: the loss of {where} is {last} after the first tenth of the run, "
                f"and {number(chance)} for a guess among the classes"
            )


def _evaluations(timeline: Timeline) -> Iterator[str]:
    """Yield the losses and the accuracies that were best long before the end."""
    for curve, points in timeline.curves.items():
        values = [value for _, value in points]
        if curve.subject not in ("evaluation loss", "figure") or len(points) < _LEAST_EVALUATIONS:
            continue
        if curve.subject == "figure" and not _RISES.search(curve.name):
            continue
        if not all(math.isfinite(value) and value > 0 for value in values):
            continue
        best = min(values) if curve.subject == "evaluation loss" else max(values)
        place = values.index(best)
        after = values[place + 1 :]
        if len(after) >= _AFTER * len(values) and all(abs(value - best) > _WORSE * best for value in after[-3:]):
            word = "lowest" if curve.subject == "evaluation loss" else "highest"
            yield (
                f"`{curve.name}` was {word} at step {points[place][0]:,} ({number(best)}) and is {number(values[-1])} "
                f"in the last of {len(after)} later evaluations that were read"
            )


def _spikes(timeline: Timeline) -> Iterator[str]:
    """Yield the largest spike of each optimizer: the gradient of a weight far above its other readings."""
    for readings in timeline.layers.values():
        series: dict[int, list[tuple[int, float]]] = {}
        for step, event in readings:
            for parameter, value in zip(event.parameters, event.gradients, strict=True):
                if math.isfinite(value):
                    series.setdefault(parameter, []).append((step, value))
        largest = (0.0, 0, 0)
        for parameter, points in series.items():
            middle = median(value for _, value in points)
            if len(points) >= _LEAST_READINGS and middle > 0:
                step, value = max(points, key=lambda point: point[1])
                largest = max(largest, (value / middle, parameter, step))
        ratio, parameter, step = largest
        if ratio >= _SPIKE:
            known = timeline.objects.parameters.get(parameter)
            name = f"parameter {parameter}" if known is None else known.name
            yield f"the gradient of `{name}` at step {step:,} is {number(ratio)} times the median of its readings"
