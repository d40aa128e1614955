"""The report of `truestep compare`: text, JSON, and curves for the picture."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence

from truestep.experiments.compare.compare import NAMES, ChoiceAnswer, Comparison, Measured
from truestep.experiments.figures.figure import MOST_SEEDS, FigureVerdict
from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.picture import mean_and_band
from truestep.experiments.reports.text import rendered, wrapped


def text(comparison: Comparison) -> str:
    """Return the comparison as text: both choices, curves, a table of numbers, and the conclusion."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", *NAMES, "B minus A, 95 %", ""):
        table.add_column(title, justify="right" if title else "left", overflow="fold")
    for one in comparison.measured:
        figure = one.figure
        table.add_row(figure.name, _spread(figure.as_it_is), _spread(figure.remedied), _interval(one), _mark(one))
    seconds = [f"{duration:.3g}" for duration in comparison.seconds]
    table.add_row("seconds per run", *seconds, "", "")
    seeds = f"{comparison.seeds} seeds"
    return "\n\n".join(
        [
            f"{_choices(comparison)}",
            *_charts(comparison),
            f"{rendered(table)}\n\nmean and half the range over {seeds}; the choices are paired by seed",
            wrapped(sentence(comparison)),
        ]
    )


def sentence(comparison: Comparison) -> str:
    """Return the conclusion as a sentence."""
    ended = _ended(comparison)
    answer = comparison.answer
    judging = comparison.judging
    if answer in (ChoiceAnswer.FIRST, ChoiceAnswer.SECOND, ChoiceAnswer.MIXED):
        parts = [_by(one, one.winner) for one in judging if one.winner]
        return f"{answer}: {'; '.join(parts)}{ended}"
    if answer is ChoiceAnswer.DIFFERENT:
        names = [one.figure.name for one in judging if one.differs]
        return f"they differ in {', '.join(names)}; say which is better with --better higher or --better lower{ended}"
    if answer is ChoiceAnswer.ALIKE:
        bound = f"{100 * comparison.within:.2g} %"
        compared = ", ".join(one.figure.name for one in judging)
        return f"they do not differ: {compared} by less than {bound} of its value, with 95 % confidence{ended}"
    unsure = [one for one in judging if one.figure.says is FigureVerdict.UNSURE]
    lost = [one.figure.name for one in judging if not any(one.finite)]
    if lost:
        return f"cannot tell: {lost[0]} is not finite with A and with B{ended}"
    needed = [one.figure.seeds for one in unsure]
    known = [seeds for seeds in needed if seeds is not None]
    more = (
        f"about {max(known)} seeds would be enough: --seeds {max(known)}"
        if known and len(known) == len(needed)
        else f"{MOST_SEEDS} would not be enough"
    )
    if comparison.seeds < 3:
        more = "at least 3 are needed"
    varies = ", ".join(one.figure.name for one in unsure[:3])
    return f"cannot tell over {comparison.seeds} seeds: {varies} varies too much from seed to seed; {more}{ended}"


def _by(one: Measured, winner: str) -> str:
    figure = one.figure
    low, high = figure.interval
    if not all(one.finite):
        return f"{figure.name} is not finite with {NAMES[winner == 'A']}"
    if winner == "A":
        low, high = -high, -low
    if one.better == "lower":
        low, high = -high, -low
    size = abs(figure.difference)
    return f"{figure.name} is {size:.3g} {one.better} with {winner}, {low:.3g} to {high:.3g} with 95 % confidence"


def _ended(comparison: Comparison) -> str:
    if not comparison.ended:
        return ""
    reason = "interrupted" if comparison.ended == "interrupted" else "the budget ended"
    return f"; {reason} after {comparison.seeds} of {comparison.wanted} seeds"


def _choices(comparison: Comparison) -> str:
    return "\n".join(
        f"{name}  {shlex.join(arguments) or '(no arguments)'}"
        for name, arguments in zip(NAMES, comparison.choices, strict=True)
    )


def curves(comparison: Comparison) -> dict[str, list[list[float]]]:
    """Return the finite losses of all seeds, by choice; empty for runs without losses."""
    return {
        name: [[loss for loss in losses if math.isfinite(loss)] or [0.0] for losses in series]
        for name, series in zip(NAMES, comparison.losses, strict=True)
        if all(series)
    }


def _charts(comparison: Comparison) -> list[str]:
    bands = {name: mean_and_band(series) for name, series in curves(comparison).items()}
    means = [mean for mean, _, _ in bands.values()]
    return [
        f"training loss of {name}\n" + "\n".join(drawn(mean, height=5, beside=means, band=(low, high)))
        for name, (mean, low, high) in bands.items()
    ]


def _mark(one: Measured) -> str:
    if one.winner:
        return f"{one.winner} is better"
    return {FigureVerdict.DIFFERS: "differs", FigureVerdict.ALIKE: "alike", FigureVerdict.UNSURE: "cannot tell"}[
        one.figure.says
    ]


def _interval(one: Measured) -> str:
    low, high = one.figure.interval
    return f"{low:+.2g} to {high:+.2g}" if math.isfinite(low) and math.isfinite(high) else ""


def _spread(values: Sequence[float]) -> str:
    """Return text with the mean of the values and half of their range."""
    finite = [value for value in values if math.isfinite(value)]
    if len(finite) < len(values):
        return f"{len(values) - len(finite)} of {len(values)} not finite"
    return f"{sum(values) / len(values):.4g} ± {(max(values) - min(values)) / 2:.2g}"


def document(comparison: Comparison) -> dict[str, object]:
    """Return the comparison as values for JSON."""
    return {
        "choices": dict(zip(NAMES, map(list, comparison.choices), strict=True)),
        "answer": str(comparison.answer),
        "sentence": sentence(comparison),
        "seeds": comparison.seeds,
        "within": comparison.within,
        "figures": [
            {
                "name": one.figure.name,
                "A": _plain(one.figure.as_it_is),
                "B": _plain(one.figure.remedied),
                "better": one.better,
                "judges": one.judges,
                "says": str(one.figure.says),
                "winner": one.winner,
                "difference": _plain([one.figure.difference])[0],
                "interval": _plain(one.figure.interval),
            }
            for one in comparison.measured
        ],
        "seconds": dict(zip(NAMES, comparison.seconds, strict=True)),
        "losses": {
            name: [_plain(values) for values in series] for name, series in zip(NAMES, comparison.losses, strict=True)
        },
    }


def _plain(values: Sequence[float]) -> list[object]:
    return [value if math.isfinite(value) else str(value) for value in values]
