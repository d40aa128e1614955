"""Does a finding matter here? Run the script with and without its remedy, over several seeds, and compare.

A remedy is applied from outside, at the seams of torch; the script is not edited. Both runs of a seed begin with the
same random numbers, and alternate in order, so that the remedy is the only difference.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from truestep.errors import NoExperiment
from truestep.experiments.changes import CHANGES, REMEDIES, Aimed
from truestep.experiments.figures.figure import WITHIN, Figure, FigureVerdict
from truestep.experiments.figures.printed import last_figures
from truestep.experiments.prove.costs import are_of, costs
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, Named, RunOutcome, Variant

LOSS = "loss at the end"
"""Name of the figure for the final loss; lower is better."""

Curves = tuple[tuple[float, ...], ...]
"""One series per seed, with a number for each step of the first optimizer."""


class ProofAnswer(enum.StrEnum):
    """Answer of a proof: does the finding matter?"""

    MATTERS = "matters"
    DOES_NOT = "does not matter"
    UNSURE = "cannot tell"


@dataclass(frozen=True, slots=True)
class RemedyProof:
    """The effect of a remedy.

    Attributes:
        rule: id of the rule of the finding.
        change: name of the remedy that was applied.
        figures: numbers of both variants, by which the finding is judged.
        beside: explanatory numbers that do not judge: norms of gradients.
        losses: loss curves without and with the remedy, one per seed.
        norms: curves of the gradient norm, in the same form.
        seeds: number of seeds that were run.
        within: smallest relative difference that counts.
        interrupted: True if Ctrl-C stopped the experiment before all seeds were run.
    """

    rule: str
    change: str
    figures: tuple[Figure, ...]
    beside: tuple[Figure, ...]
    losses: tuple[Curves, Curves]
    norms: tuple[Curves, Curves]
    seeds: int = 3
    within: float = WITHIN
    interrupted: bool = False

    @property
    def answer(self) -> ProofAnswer:
        """MATTERS if any number differs, DOES_NOT if all of them are surely alike, else UNSURE."""
        if self.matters:
            return ProofAnswer.MATTERS
        alike = self.figures and all(figure.says is FigureVerdict.ALIKE for figure in self.figures)
        return ProofAnswer.DOES_NOT if alike else ProofAnswer.UNSURE

    @property
    def matters(self) -> bool:
        """True if any number differs beyond the noise."""
        return any(figure.is_beyond_noise for figure in self.figures)

    @property
    def seeds_needed(self) -> int | None:
        """Number of seeds that should suffice, by the observed spread; None for too many or unknown."""
        needed = [figure.seeds for figure in self.figures if figure.says is FigureVerdict.UNSURE]
        known = [seeds for seeds in needed if seeds is not None]
        return max(known) if known and len(known) == len(needed) else None


def found(bench: Bench) -> RunOutcome:
    """Run the unchanged script once, for its findings.

    Args:
        bench: the script and the number of steps.

    Raises:
        NoExperiment: the script took no step.
    """
    outcome = bench.run(Variant("as it is", (("seeded", {"offset": 0}),)))
    if not outcome.steps:
        raise without_steps(outcome, "expected an optimizer that steps")
    return outcome


def run_of(seen: RunOutcome) -> str:
    """Return a description of a run, such as "a run of 20 steps that was stopped"."""
    steps = "1 step" if seen.steps == 1 else f"{seen.steps} steps"
    return f"a run of {steps} that {'was ' if seen.how in ('stopped', 'killed', 'interrupted') else ''}{seen.how}"


def prove(
    bench: Bench, rule: str, seeds: int = 3, seen: RunOutcome | None = None, *, within: float = WITHIN
) -> RemedyProof:
    """Compare a script without and with the remedy of a rule.

    Args:
        bench: the script and the number of steps.
        rule: id of a rule that has a remedy.
        seeds: number of seeds, at least 3 for a verdict.
        seen: the outcome returned by `found`; None runs the script for it.
        within: relative difference below which two numbers count as equal.

    Raises:
        NoExperiment: the rule has no remedy or was not found, the remedy changed nothing or did not fix the failure,
            or a variant took no step.
    """
    if rule not in REMEDIES:
        raise NoExperiment(
            f"{rule} has no remedy that can be applied from outside",
            expected=f"expected one of {', '.join(sorted(REMEDIES))}",
            remedy=f"apply the fix from `truestep explain {rule}`, and compare by hand",
        )
    idle, remedy = _remedy(rule, seen or found(bench))
    _mends(bench, rule, remedy)
    if are_of(rule):
        bench = replace(bench, cache=None)  # no cached outcomes: times of both variants must be measured together
    pairs: list[tuple[RunOutcome, RunOutcome]] = []
    try:
        for seed in range(seeds):
            pair = _pair(bench, rule, idle, remedy, seed)
            pairs.append(pair)
    except KeyboardInterrupt:
        if len(pairs) < 2:
            raise
    losses, norms = _curves(pairs, lambda outcome: outcome.losses), _curves(pairs, lambda outcome: outcome.norms)
    figures = [*(replace(figure, least=within) for figure in _figures(pairs, remedy[0])), *costs(rule, pairs)]
    judging = tuple(replace(figure, among=len(figures)) for figure in figures)
    beside, cut = tuple(_beside(norms)), len(pairs) < seeds
    return RemedyProof(rule, remedy[0], judging, beside, losses, norms, len(pairs), within, cut)


def _pair(bench: Bench, rule: str, idle: tuple[Named, ...], remedy: Named, seed: int) -> tuple[RunOutcome, RunOutcome]:
    """Return the outcomes as it is and remedied, for one seed."""
    seeded = ("seeded", {"offset": seed})
    plain = Variant(f"as it is, seed {seed}", (seeded, *idle), (LOSSES,))
    mended = Variant(f"{remedy[0]}, seed {seed}", (seeded, remedy), (LOSSES,))
    order = (plain, mended) if seed % 2 == 0 else (mended, plain)  # drift of the machine affects both alike
    first, second = (bench.run(variant) for variant in order)
    pair = (first, second) if seed % 2 == 0 else (second, first)
    _check(rule, remedy[0], pair)
    return pair


def _remedy(rule: str, seen: RunOutcome) -> tuple[tuple[Named, ...], Named]:
    """Return the changes of the variant without the remedy, and the remedy.

    A remedy that is applied at the lines of findings gets these lines. If time is compared, the other variant gets the
    same remedy without lines, so that the overhead of watching for lines is in both.
    """
    change = REMEDIES[rule]
    if rule not in seen.findings:
        raise NoExperiment(
            f"{rule} was not found in {run_of(seen)}: there is nothing to prove",
            expected=f"found: {', '.join(dict.fromkeys(seen.findings)) or 'nothing'}",
            remedy="raise --steps up to the end of the script: some failures show only there",
            said=seen.said if seen.how == "crashed" else "",
        )
    if not issubclass(CHANGES[change], Aimed):
        return (), (change, {})
    aims = seen.aims(rule)
    return ((change, {"idle": True}),) if are_of(rule) else (), (change, {"aims": aims})


def _mends(bench: Bench, rule: str, remedy: Named) -> None:
    """Raise `NoExperiment` if the rule still finds the failure although its remedy is applied."""
    if not CHANGES[remedy[0]].silences:
        return
    watched = bench.run(Variant(f"{remedy[0]}, watched", (("seeded", {"offset": 0}), remedy)))
    if watched.steps and watched.how != "crashed" and rule in watched.findings:
        raise NoExperiment(
            f"the remedy {remedy[0]} does not fix every occurrence: {rule} is still found",
            remedy=f"apply the fix from `truestep explain {rule}`, and compare by hand",
        )


def _check(rule: str, change: str, pair: tuple[RunOutcome, RunOutcome]) -> None:
    for outcome in pair:
        if not outcome.steps:
            raise without_steps(outcome, f"expected losses to compare ({outcome.variant.name})")
    if pair[1].how == "crashed" and pair[0].how != "crashed":
        raise NoExperiment(
            f"the script crashed with the remedy of {rule} ({pair[1].variant.name}), and not without it",
            remedy=f"apply the fix from `truestep explain {rule}`, and compare by hand",
            said=pair[1].said,
        )
    if not pair[1].changes.get(change, {}).get("applied"):
        raise NoExperiment(
            f"the remedy of {rule} found nothing to change",
            expected=f"expected a place for {change} in {pair[1].steps} steps",
            remedy="raise --steps, or apply the fix by hand: a loss or clipping written out in the script is not seen",
        )


def _curves(
    pairs: Sequence[tuple[RunOutcome, RunOutcome]], series: Callable[[RunOutcome], tuple[float | None, ...]]
) -> tuple[Curves, Curves]:
    """Return one series per outcome, without and with the remedy; steps that have no number are left out."""
    before, after = (
        tuple(tuple(number for number in series(pair[side]) if number is not None) for pair in pairs) for side in (0, 1)
    )
    return before, after


def _figures(pairs: Sequence[tuple[RunOutcome, RunOutcome]], change: str) -> list[Figure]:
    """Return the numbers that are known for both variants and every seed."""
    figures = []
    if not CHANGES[change].alters_loss:
        ends = [_ends(*pair) for pair in pairs]
        figures.append(Figure(LOSS, tuple(end[0] for end in ends), tuple(end[1] for end in ends)))
    if all(outcome.how == "finished" for pair in pairs for outcome in pair):  # only a whole run prints its last numbers
        printed = [tuple(last_figures(outcome.said) for outcome in pair) for pair in pairs]
        for name in printed[0][0]:
            if all(name in figure for pair in printed for figure in pair):
                as_it_is, remedied = (tuple(pair[side][name] for pair in printed) for side in (0, 1))
                figures.append(Figure(name, as_it_is, remedied))
    return figures


def _beside(norms: tuple[Curves, Curves]) -> list[Figure]:
    """Return explanatory numbers: the median norm of the gradients."""
    if not all(curve for curves in norms for curve in curves):
        return []
    return [Figure("median gradient norm", tuple(map(median, norms[0])), tuple(map(median, norms[1])))]


def _ends(before: RunOutcome, after: RunOutcome) -> tuple[float, float]:
    """Return the mean losses over the last tenth of the steps that both variants took."""
    steps = min(before.steps, after.steps)
    last = slice(steps - max(1, steps // 10), steps)
    ends = ([loss for loss in outcome.losses[last] if loss is not None] for outcome in (before, after))
    first, second = (fmean(losses) if losses else math.nan for losses in ends)
    return first, second
