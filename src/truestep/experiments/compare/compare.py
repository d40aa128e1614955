"""Which of two choices is better? Run a script with both lists of arguments, over several seeds, and compare.

Both runs of a seed begin with the same random numbers, and alternate in order. The numbers are judged like those of
`truestep prove`: paired by seed, with Student's interval.
"""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from truestep.errors import NoExperiment
from truestep.experiments.figures.figure import Figure, FigureVerdict
from truestep.experiments.figures.printed import better, last_figures
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, RunOutcome, Variant

LOSS = "loss at the end"
"""Name of the figure for the final training loss; lower is better."""
NAMES = ("A", "B")

Pair = tuple[RunOutcome, RunOutcome]
"""The outcomes of A and of B for one seed."""


class ChoiceAnswer(enum.StrEnum):
    """Answer of a comparison."""

    FIRST = "A is better"
    SECOND = "B is better"
    MIXED = "each is better in one number"
    DIFFERENT = "they differ"
    ALIKE = "they do not differ"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class Measured:
    """One number of both choices.

    Attributes:
        figure: the number, with A as `as_it_is` and B as `remedied`.
        better: "higher", "lower", or "" if unknown.
        judges: True if the answer depends on it.
    """

    figure: Figure
    better: str
    judges: bool

    @property
    def finite(self) -> tuple[bool, bool]:
        """Whether all values of A, and all of B, are finite."""
        return all(map(math.isfinite, self.figure.as_it_is)), all(map(math.isfinite, self.figure.remedied))

    @property
    def differs(self) -> bool:
        """True if the numbers differ, or if those of one choice alone are finite."""
        return self.figure.is_beyond_noise if all(self.finite) else any(self.finite)

    @property
    def winner(self) -> str:
        """The better choice: "A" or "B"; "" if this is uncertain, or for a number with an unknown direction."""
        if not self.differs or not self.better:
            return ""
        if not all(self.finite):
            return NAMES[self.finite[1]]
        return NAMES[(self.figure.difference > 0) == (self.better == "higher")]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two choices, compared.

    Attributes:
        choices: arguments of A and of B.
        measured: the compared numbers.
        losses: loss curves of A and of B, one per seed.
        seconds: mean duration of a run of A and of B.
        within: smallest relative difference that counts.
        wanted: number of seeds that were asked for.
        ended: why there are fewer seeds: "", "interrupted" or "budget".
    """

    choices: tuple[tuple[str, ...], tuple[str, ...]]
    measured: tuple[Measured, ...]
    losses: tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]
    seconds: tuple[float, float]
    within: float
    wanted: int
    ended: str = ""

    @property
    def seeds(self) -> int:
        """Number of seeds that were run."""
        return len(self.losses[0])

    @property
    def judging(self) -> tuple[Measured, ...]:
        """The numbers that decide."""
        return tuple(one for one in self.measured if one.judges)

    @property
    def answer(self) -> ChoiceAnswer:
        """The answer of the numbers that decide: one that differs is enough, all must be alike for "no difference"."""
        winners = {one.winner for one in self.judging} - {""}
        if len(winners) == 2:
            return ChoiceAnswer.MIXED
        if winners:
            return ChoiceAnswer.FIRST if winners == {"A"} else ChoiceAnswer.SECOND
        if any(one.differs for one in self.judging):
            return ChoiceAnswer.DIFFERENT
        alike = self.judging and all(one.figure.says is FigureVerdict.ALIKE for one in self.judging)
        return ChoiceAnswer.ALIKE if alike else ChoiceAnswer.UNSURE


def compare(
    bench: Bench,
    choices: tuple[Sequence[str], Sequence[str]],
    seeds: int = 5,
    *,
    within: float = 0.005,
    budget_s: float = math.inf,
    metric: str = "",
    direction: str = "",
) -> Comparison:
    """Compare two choices over several seeds.

    Args:
        bench: the script, and the number of steps.
        choices: all arguments of the script for A and for B.
        seeds: number of seeds, at least 3 for a verdict.
        within: relative difference below which two numbers count as equal.
        budget_s: seconds after which no further seed is begun.
        metric: part of the name of the number that decides; "" for those with a known direction.
        direction: "higher" or "lower", for numbers with an unknown direction; "" leaves these undecided.

    Raises:
        NoExperiment: a run crashed, the runs share no number, or none is called `metric`.
    """
    begun, pairs, ended = time.monotonic(), list[Pair](), ""
    try:
        for seed in range(seeds):
            passed = time.monotonic() - begun
            if seed >= 2 and passed * (seed + 1) / seed > budget_s:
                ended = "budget"
                break
            pairs.append(_pair(bench, choices, seed))
            if not seed:
                _judged(_figures(pairs), metric, direction, within)  # raises before the other seeds run
    except KeyboardInterrupt:
        if len(pairs) < 2:
            raise
        ended = "interrupted"
    figures = _figures(pairs)
    curves = [tuple(tuple(loss for loss in pair[side].losses if loss is not None) for pair in pairs) for side in (0, 1)]
    return Comparison(
        (tuple(choices[0]), tuple(choices[1])),
        _judged(figures, metric, direction, within),
        (curves[0], curves[1]),
        (fmean(a.seconds for a, _ in pairs), fmean(b.seconds for _, b in pairs)),
        within,
        seeds,
        ended,
    )


def _pair(bench: Bench, choices: tuple[Sequence[str], Sequence[str]], seed: int) -> Pair:
    """Return the outcomes of both choices for one seed."""
    variants = [
        Variant(f"{name}, seed {seed}", (("seeded", {"offset": seed}),), (LOSSES,), tuple(arguments))
        for name, arguments in zip(NAMES, choices, strict=True)
    ]
    order = variants if seed % 2 == 0 else variants[::-1]  # drift of the machine affects both alike
    outcomes = {variant.name: bench.run(variant) for variant in order}
    for name, outcome in zip(NAMES, outcomes.values() if seed % 2 == 0 else reversed(outcomes.values()), strict=True):
        if outcome.how in ("crashed", "exited"):
            raise NoExperiment(
                f"the script {outcome.how} with the arguments of {name} (seed {seed}): {outcome.last_line}",
                remedy=_remedy(bench.target.name, choices[NAMES.index(name)], outcome.last_line),
                said=outcome.said,
            )
        if outcome.how == "killed":
            raise NoExperiment(
                f"a run of {name} exceeded its limit (seed {seed}), so that its results are not comparable",
                remedy="raise --limit, or end all runs after the same number of steps with --steps",
            )
    first, second = (outcomes[variant.name] for variant in variants)
    return first, second


def _remedy(script: str, arguments: Sequence[str], last_line: str) -> str:
    """Return the next step after a run that exited early."""
    if "unrecognized arguments" in last_line:  # as argparse says it, often of options that are ours
        return f"write options of truestep before the script: truestep compare OPTIONS {script} ..."
    return f"start it alone: python {script} {' '.join(arguments)}"


def _figures(pairs: Sequence[Pair]) -> list[Figure]:
    """Return the numbers that are known for both choices and every seed: printed ones, and the loss at the end."""
    values: dict[str, list[tuple[float, float]]] = {}
    if all(outcome.how == "finished" for pair in pairs for outcome in pair):  # only a whole run prints its last numbers
        printed = [(last_figures(first.said), last_figures(second.said)) for first, second in pairs]
        for name in printed[0][0]:
            if all(name in numbers for pair in printed for numbers in pair):
                values[name] = [(first[name], second[name]) for first, second in printed]
    ends = [(_end(first), _end(second)) for first, second in pairs]
    known = [(first, second) for first, second in ends if first is not None and second is not None]
    if len(known) == len(pairs):
        values[LOSS] = known
    figures = [
        Figure(name, tuple(first for first, _ in both), tuple(second for _, second in both))
        for name, both in values.items()
    ]
    if not figures:
        raise without_steps(pairs[0][0], "expected losses, or numbers in the last line that the script prints")
    return figures


def _end(outcome: RunOutcome) -> float | None:
    """Return the mean loss over the last tenth of the steps; None without a loss."""
    losses = [loss for loss in outcome.losses if loss is not None]
    return fmean(losses[-max(1, len(losses) // 10) :]) if losses else None


def _judged(figures: Sequence[Figure], metric: str, direction: str, within: float) -> tuple[Measured, ...]:
    """Return the numbers with their direction; those decide that the user names, else printed ones with a direction,
    else the training loss."""
    known = {figure.name: better(figure.name) or direction for figure in figures}
    if metric:
        deciding = [name for name in known if metric.lower() in name.lower()]
        if not deciding:
            raise NoExperiment(
                f'no number is called "{metric}"',
                expected=f"expected a part of one of: {', '.join(known)}",
                remedy="name one of them, or let the script print the number in its last line",
            )
        known |= {name: direction or known[name] for name in deciding}
    else:
        deciding = [name for name in known if known[name] and name != LOSS] or [name for name in known if name == LOSS]
        deciding = deciding or list(known)
    return tuple(
        Measured(
            Figure(figure.name, figure.as_it_is, figure.remedied, least=within, among=len(deciding)),
            known[figure.name],
            figure.name in deciding,
        )
        for figure in figures
    )
