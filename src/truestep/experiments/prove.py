"""Does a finding matter here? The script runs with and without the remedy, over several seeds; the two are compared.

A remedy is applied from outside, at the seams of torch; the script is not edited. Both runs of a seed begin with the
same random numbers, and take turns, so that what differs is the remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from truestep.errors import NoExperiment
from truestep.experiments.bench import Bench
from truestep.experiments.changes import REMEDIES
from truestep.experiments.outcome import LOSSES, Outcome, Variant

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")
_LOSS_CHANGES = ("undo-activation", "align-target", "log-probabilities", "softmax-over-classes", "ignore-padding")
"""Remedies after which the loss is another function: its values are not to be compared."""

Curves = tuple[tuple[float, ...], ...]
"""One series per seed, a number for each step of the first optimizer."""
_STUDENT = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % quantile of Student's t for 1 to 10 degrees of freedom; the last one is taken for more."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both variants, over the seeds.

    Attributes:
        name: what it is: "loss at the end", or the text around a number that the script prints last.
        as_it_is: one value per seed.
        remedied: likewise.
    """

    name: str
    as_it_is: tuple[float, ...]
    remedied: tuple[float, ...]

    @property
    def difference(self) -> float:
        """The mean of the remedied values less that of the others."""
        return fmean(self.remedied) - fmean(self.as_it_is)

    @property
    def is_beyond_noise(self) -> bool:
        """Whether the difference has one sign for every seed, and Student's interval of 95 % around it leaves 0 out."""
        pairs = [after - before for before, after in zip(self.as_it_is, self.remedied, strict=True)]
        if not all(map(math.isfinite, pairs)):
            return not all(map(math.isfinite, self.as_it_is)) and all(map(math.isfinite, self.remedied))
        if len(pairs) < 2 or not (all(pair > 0 for pair in pairs) or all(pair < 0 for pair in pairs)):
            return False
        quantile = _STUDENT[min(len(pairs) - 1, len(_STUDENT)) - 1]
        return abs(fmean(pairs)) > quantile * stdev(pairs) / math.sqrt(len(pairs))


@dataclass(frozen=True, slots=True)
class Proof:
    """What a remedy changes.

    Attributes:
        rule: of the finding.
        change: what was done.
        figures: numbers of both variants, by which the finding is judged.
        beside: numbers that explain and do not judge: norms of gradients.
        losses: one curve per seed, as it is and remedied.
        norms: of the gradients, likewise.
    """

    rule: str
    change: str
    figures: tuple[Figure, ...]
    beside: tuple[Figure, ...]
    losses: tuple[Curves, Curves]
    norms: tuple[Curves, Curves]

    @property
    def matters(self) -> bool:
        """Whether any number differs beyond the noise."""
        return any(figure.is_beyond_noise for figure in self.figures)


def found(bench: Bench) -> Outcome:
    """Run the script as it is, to see what there is to prove.

    Args:
        bench: the script, and for how many steps.

    Raises:
        NoExperiment: the script did not come to its steps.
    """
    outcome = bench.run(Variant("as it is", (("seeded", {"offset": 0}),)))
    if not outcome.steps:
        raise NoExperiment(
            f"the script {outcome.how} before its first step",
            expected="an optimizer that steps",
            remedy="mend what it says above, or give arguments with which it trains",
            said=outcome.said,
        )
    return outcome


def prove(bench: Bench, rule: str, seeds: int = 3) -> Proof:
    """Compare a script with itself and the remedy of a rule.

    Args:
        bench: the script, and for how many steps.
        rule: the id of a rule with a remedy.
        seeds: how many repetitions, at least 3 for a verdict.

    Raises:
        NoExperiment: the rule has no remedy, the remedy applied to nothing, or a variant did not come to its steps.
    """
    if rule not in REMEDIES:
        raise NoExperiment(
            f"{rule} has no remedy that can be applied from outside",
            expected=f"one of {', '.join(sorted(REMEDIES))}",
            remedy=f"apply what `truestep explain {rule}` says, and compare yourself",
        )
    change = REMEDIES[rule]
    pairs: list[tuple[Outcome, Outcome]] = []
    for seed in range(seeds):
        seeded = ("seeded", {"offset": seed})
        plain = Variant(f"as it is, seed {seed}", (seeded,), (LOSSES,))
        mended = Variant(f"{change}, seed {seed}", (seeded, (change, {})), (LOSSES,))
        order = (plain, mended) if seed % 2 == 0 else (mended, plain)  # whatever the machine does meets both
        first, second = (bench.run(variant) for variant in order)
        pairs.append((first, second) if seed % 2 == 0 else (second, first))
        _check(rule, change, pairs[-1])
    losses, norms = _curves(pairs, lambda outcome: outcome.losses), _curves(pairs, lambda outcome: outcome.norms)
    return Proof(rule, change, tuple(_figures(pairs, change)), tuple(_beside(norms)), losses, norms)


def _check(rule: str, change: str, pair: tuple[Outcome, Outcome]) -> None:
    for outcome in pair:
        if not outcome.steps:
            raise NoExperiment(
                f"the script {outcome.how} before its first step ({outcome.variant.name})",
                expected="losses to compare",
                remedy="raise --limit or --steps, or mend what it says above",
                said=outcome.said,
            )
    if not pair[1].changes.get(change, {}).get("applied"):
        raise NoExperiment(
            f"the remedy of {rule} found nothing to change",
            expected=f"what {change} applies to, in a run of {pair[1].steps} steps",
            remedy="raise --steps, or apply the fix by hand: a loss or a clip written in the script is not reached",
        )


def _curves(
    pairs: Sequence[tuple[Outcome, Outcome]], series: Callable[[Outcome], tuple[float | None, ...]]
) -> tuple[Curves, Curves]:
    """Return a series of each outcome, as it is and remedied, without the steps that have no number."""
    before, after = (
        tuple(tuple(number for number in series(pair[side]) if number is not None) for pair in pairs) for side in (0, 1)
    )
    return before, after


def _figures(pairs: Sequence[tuple[Outcome, Outcome]], change: str) -> list[Figure]:
    """Return the numbers that both variants have for every seed."""
    figures = []
    if change not in _LOSS_CHANGES:
        before, after = _curves(pairs, lambda outcome: outcome.losses)
        figures.append(Figure("loss at the end", tuple(map(_end, before)), tuple(map(_end, after))))
    if all(outcome.how == "finished" for pair in pairs for outcome in pair):  # else it did not come to its figures
        told = [tuple(last_figures(outcome.said) for outcome in pair) for pair in pairs]
        for name in told[0][0]:
            if all(name in figure for pair in told for figure in pair):
                as_it_is, remedied = (tuple(pair[side][name] for pair in told) for side in (0, 1))
                figures.append(Figure(name, as_it_is, remedied))
    return figures


def _beside(norms: tuple[Curves, Curves]) -> list[Figure]:
    """Return the numbers that explain a difference."""
    if not all(curve for curves in norms for curve in curves):
        return []
    return [Figure("median gradient norm", tuple(map(median, norms[0])), tuple(map(median, norms[1])))]


def _end(losses: Sequence[float]) -> float:
    """Return the mean of the last tenth of the losses."""
    return fmean(losses[-max(1, len(losses) // 10) :]) if losses else math.nan


def last_figures(said: str) -> dict[str, float]:
    """Return the numbers of the last line that has a fraction in it, by the text around them.

    >>> last_figures("epoch 3: loss 0.5\\nheld-out accuracy 96.2 %, error 0.04\\nbye")
    {'held-out accuracy …': 96.2, '%, error …': 0.04}
    """
    for line in reversed(said.splitlines()):
        numbers = [match for match in _NUMBER.finditer(line) if "." in match[0] or "e" in match[0].lower()]
        if numbers:
            starts = [0, *(match.end() for match in numbers)]
            return {
                f"{line[start : match.start()].strip()} …".strip(): float(match[0])
                for start, match in zip(starts, numbers, strict=False)
            }
    return {}
