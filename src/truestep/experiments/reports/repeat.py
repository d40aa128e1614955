"""The report of `truestep repeat`: text and JSON."""

from __future__ import annotations

import math
from textwrap import indent

from truestep.experiments.repeat.repeat import Repeat, RepeatVerdict
from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.text import WIDTH, wrapped

_VISIBLE = 0.02
"""Curves are drawn if their mean distance is at least this fraction of the chart's height."""


def text(result: Repeat) -> str:
    """Return the result as text: the verdict, the first operation that differs, and the causes with their remedies."""
    parts = [wrapped(sentence(result)), *_charts(result)]
    if result.operation is not None:
        parts.append(wrapped(f"first operation: {result.operation}"))
    if result.causes:
        causes = [
            f"{number}. {source.title}\n" + indent(wrapped(f"mend: {source.remedy}", WIDTH - 3), "   ")
            for number, source in enumerate(result.causes, 1)
        ]
        parts.append("the runs differ because of:\n\n" + "\n\n".join(causes))
    elif result.first is not None:
        parts.append(wrapped(_without_cause(result)))
    if result.interrupted:
        parts.append("the search for the cause was ended early: there can be more causes")
    return "\n\n".join(parts)


def sentence(result: Repeat) -> str:
    """Return the verdict as a sentence."""
    runs = f"{result.runs} runs"
    steps = f"{result.steps} step{'s' * (result.steps != 1)}"
    if result.verdict is RepeatVerdict.EQUAL:
        stopped = ", to the step at which they were stopped" if result.how == "stopped" else ""
        return f"reproducible: {runs} of {steps} are equal, bit by bit{stopped}"
    if result.first is None:
        name, (one, other) = next(iter(result.printed.items()))
        return (
            f"not reproducible: {runs} train the same weights in {steps}, and print different numbers: {name} "
            f"{one:g} and {other:g}; the evaluation is random"
        )
    where = f"the first step that differs is {result.first} ({', '.join(result.pieces)})"
    if result.verdict is RepeatVerdict.ROUNDING:
        return f"equal within rounding: {where}, in the last digits of its loss"
    return f"not reproducible: {where}"


def _without_cause(result: Repeat) -> str:
    if result.controlled is None:
        return "the cause was not looked for"
    if result.controlled:
        return (
            "no single source makes the difference: with all of them controlled the runs are equal. It can be rare, or "
            "need two sources at once: run the command again"
        )
    return (
        "the difference remains with all generators, the clock, hashes and threads controlled: look for numbers drawn "
        "before torch is imported, generators with a seed from elsewhere, the order of finished workers or files, and "
        "data that changes from run to run"
    )


def _charts(result: Repeat) -> list[str]:
    """Return charts of both losses on one scale, or [] if they differ too little to be seen."""
    if len(result.losses) < 2:
        return []
    series = [[loss for loss in losses if loss is not None and math.isfinite(loss)] for losses in result.losses]
    one, other = series
    if len(one) < 2 or len(other) < 2:
        return []
    apart = [abs(a - b) for a, b in zip(one, other, strict=False)]
    if sum(apart) <= _VISIBLE * len(apart) * (max(one) - min(one)):
        return []
    names = ("loss of the first run", f"loss of run {result.runs}")
    return [
        f"{name}\n" + "\n".join(drawn(losses, height=5, beside=[one, other]))
        for name, losses in zip(names, series, strict=True)
    ]


def document(result: Repeat) -> dict[str, object]:
    """Return the result as values for JSON."""
    operation = result.operation
    return {
        "verdict": str(result.verdict),
        "sentence": sentence(result),
        "runs": result.runs,
        "steps": result.steps,
        "first": result.first,
        "pieces": list(result.pieces),
        "printed": {name: list(values) for name, values in result.printed.items()},
        "operation": operation and {"name": operation.name, "line": operation.line, "why": operation.why},
        "causes": [{"source": one.name, "title": one.title, "remedy": one.remedy} for one in result.causes],
        "equal_if_controlled": result.controlled,
        "interrupted": result.interrupted,
    }
