"""Can this model and loop learn at all? Train on one repeated batch; its loss must fall close to zero.

A model that cannot learn one batch by heart will not learn a data set: the loop, the loss, the labels or the learning
rate is wrong. Described in Andrej Karpathy's "A Recipe for Training Neural Networks" (2019).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from truestep.errors import NoExperiment
from truestep.experiments.overfit import causes
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, Named, RunOutcome, Variant

_LEARNT, _FALLEN, _FALLING, _RISEN = 0.1, 0.5, 0.9, 1.5
"""Fractions of the first loss: at most _LEARNT: learned by heart; at most _FALLEN: the loop learns; at most _FALLING:
it learns if the loss still falls; above _RISEN: it diverges."""

_FRESH = 0.1
"""Largest fraction of other batches: a second loader has its own first batches."""


class LearningVerdict(enum.StrEnum):
    """Verdict on a loop: does it learn one batch?"""

    LEARNS = "learns"
    FALLS = "falls"
    STUCK = "stuck"
    DIVERGES = "diverges"


@dataclass(frozen=True, slots=True)
class Overfit:
    """Result of the experiment.

    Attributes:
        answer: does the loop learn?
        sentence: the answer as a sentence.
        losses: losses of the steps on the first batches.
        outcome: outcome of the run on the first batches.
        plain: outcome of the unchanged script, which runs if the batch is not learned by heart; else None.
        causes: reasons why it does not learn, as far as the runs show them.
    """

    answer: LearningVerdict
    sentence: str
    losses: tuple[float, ...]
    outcome: RunOutcome
    plain: RunOutcome | None = None
    causes: tuple[str, ...] = ()


def overfit(bench: Bench, *, batches: int = 1, dropout: bool = True) -> Overfit:
    """Run a script on its first batches, repeated in every step, and judge its losses.

    Args:
        bench: the script and the number of steps.
        batches: number of batches to repeat.
        dropout: False switches dropout off.

    Raises:
        NoExperiment: the script took no step, or has no batch that can be repeated.
    """
    changes: list[Named] = [("first-batches", {"count": batches})]
    if not dropout:
        changes.append(("no-dropout", {}))
    looked: tuple[Named, ...] = (LOSSES, ("learning", {}))
    outcome = bench.run(Variant("first batches", tuple(changes), looked))
    losses = losses_of(outcome)
    _check(outcome, losses, batches)
    answer = judge(losses, batches)
    if outcome.how in ("crashed", "exited", "killed") and answer in (LearningVerdict.STUCK, LearningVerdict.FALLS):
        raise _ended_early(outcome, len(losses))
    sentence = _sentence(answer, _what(outcome, batches), losses, batches, dropout)
    plain = bench.run(Variant("as it is")) if answer is not LearningVerdict.LEARNS else None
    why: list[str] = []
    if answer in (LearningVerdict.STUCK, LearningVerdict.DIVERGES):
        why = causes.shown(outcome, batches)
        if not why and plain is not None and not plain.findings:

            def learns(factor: float) -> bool:
                scaled = (*changes, ("scaled-rates", {"factor": factor}))
                found = losses_of(bench.run(Variant(f"learning rate times {factor:g}", scaled, (LOSSES,))))
                return bool(found) and judge(found, batches) in (LearningVerdict.LEARNS, LearningVerdict.FALLS)

            why = causes.rate(outcome, losses, learns)
    return Overfit(answer, sentence, losses, outcome, plain, tuple(why))


def losses_of(outcome: RunOutcome) -> tuple[float, ...]:
    """Return the losses of the steps, without the steps that had no loss."""
    return tuple(loss for loss in outcome.losses if loss is not None)


def _what(outcome: RunOutcome, batches: int) -> str:
    """Return a phrase for the repeated batches, such as "one batch of 32 samples"."""
    counts = outcome.changes["first-batches"]
    samples = counts["samples"]
    what = "one batch" if batches == 1 else f"{batches} batches"
    if counts.get("by_hand") and not counts["applied"]:
        what = "the batch that the script itself repeats"
    if samples:
        what += f" of {samples} samples" if batches == 1 else f" ({samples} samples)"
    return what


def judge(losses: Sequence[float], batches: int = 1) -> LearningVerdict:
    """Return the verdict on losses of repeated batches.

    Args:
        losses: one loss per step.
        batches: number of batches, and so the number of steps until a batch repeats.

    >>> [str(judge([2.3, end])) for end in (0.01, 0.8, 2.2, 9.0, float("nan"))]
    ['learns', 'falls', 'stuck', 'diverges', 'diverges']
    """
    if not all(map(math.isfinite, losses)):
        return LearningVerdict.DIVERGES
    first, last = ends(losses, batches)
    if first <= 0:  # a loss without a lower bound, such as the negative log-likelihood of a density
        return LearningVerdict.FALLS if last < first - _FALLEN * max(abs(first), 1e-3) else LearningVerdict.STUCK
    if last <= _LEARNT * first:
        return LearningVerdict.LEARNS
    if last <= _FALLEN * first or (last <= _FALLING * first and _still_falls(losses, batches)):
        return LearningVerdict.FALLS
    return LearningVerdict.DIVERGES if last > _RISEN * first else LearningVerdict.STUCK


def ends(losses: Sequence[float], batches: int) -> tuple[float, float]:
    """Return the mean loss of the first round over the batches, and of the last steps."""
    return fmean(losses[:batches]), fmean(losses[-_tail(losses, batches) :])


def _tail(losses: Sequence[float], batches: int) -> int:
    """Return the number of steps at the end of a curve to average over: whole rounds over the batches."""
    rounds = max(1, min(len(losses) // 20, 20) // batches)
    return rounds * batches


def _means(losses: Sequence[float], batches: int) -> list[float]:
    """Return the moving average, with a window as long as the end of the curve."""
    tail = _tail(losses, batches)
    return [fmean(losses[end - tail : end]) for end in range(tail, len(losses) + 1)] or [fmean(losses)]


def _still_falls(losses: Sequence[float], batches: int) -> bool:
    """Return True if the loss still fell in the last quarter of the steps, and ends near its lowest value."""
    means = _means(losses, batches)
    return means[-1] < 0.97 * means[-1 - len(means) // 4] and means[-1] <= 1.05 * min(means)


def _course(losses: tuple[float, ...], batches: int, dropout: bool) -> str:
    """Return a phrase for the end of the curve: it still falls, it has settled, or it was lower before."""
    first, last = ends(losses, batches)
    means = _means(losses, batches)
    best = min(range(len(means)), key=means.__getitem__)
    if last - means[best] > 0.1 * abs(first):
        return f", and was at {means[best]:.4g} in step {best + _tail(losses, batches)}: the steps are too large"
    if _still_falls(losses, batches):
        return f", and still falls; --steps {4 * len(losses)} shows more"
    hint = ", or dropout: try --no-dropout" if dropout else ""
    return f", and has settled; possible causes: a loss with a minimum above 0 (label smoothing){hint}"


def _check(outcome: RunOutcome, losses: tuple[float, ...], batches: int) -> None:
    """Raise `NoExperiment` if the run trained on other data than the first batches."""
    if not losses:
        raise without_steps(outcome, "expected losses of steps to compare")
    counts = outcome.changes.get("first-batches", {})
    again, fresh = counts.get("applied", 0) + counts.get("same", 0), counts.get("fresh", 0)
    if len(losses) <= batches:
        return
    if not again:
        raise NoExperiment(
            "no batch could be repeated: no loader yielded one with gradients enabled, and no model in training mode "
            "was called with data twice",
            expected="expected a loop over a torch DataLoader or a loader of truestep.Run, or calls of an nn.Module",
            remedy="use a DataLoader in the script, or reduce its data to one batch",
            said=outcome.said,
        )
    if fresh > _FRESH * (again + fresh):
        what = "calls of models" if counts.get("by_hand") else "batches"
        raise NoExperiment(
            f"{fresh} of {again + fresh} {what} could not be repeated: the script trained on other data too",
            expected="expected the same batches in every step",
            remedy="reduce the script's data to one batch, and run it without `truestep overfit`",
            said=outcome.said,
        )
    if counts.get("loose", 0):
        raise NoExperiment(
            "the inputs of each step were repeated, but its targets could not be: the script computes its own loss",
            expected="expected a loss of torch.nn, or a model that computes the loss",
            remedy="use a loss of torch.nn.functional, or reduce the script's data to one batch",
            said=outcome.said,
        )


def _ended_early(outcome: RunOutcome, steps: int) -> NoExperiment:
    if outcome.how == "killed":
        return NoExperiment(
            f"the script exceeded its limit after {steps} steps on its first batches",
            remedy="raise --limit or --memory, or lower --steps",
            said=outcome.said,
        )
    return NoExperiment(
        f"the script {outcome.how} after {steps} steps on its first batches",
        remedy="fix the error above; if only a repeated batch causes it, reduce the script's data to one batch",
        said=outcome.said,
    )


def _sentence(answer: LearningVerdict, what: str, losses: tuple[float, ...], batches: int, dropout: bool) -> str:
    first, last = ends(losses, batches)
    fell = f"the loss on {what} fell from {first:.4g} to {last:.4g} in {len(losses)} steps"
    if answer is LearningVerdict.LEARNS:
        return f"this loop can learn: {fell}"
    if answer is LearningVerdict.FALLS:
        return f"this loop learns, but not by heart: {fell}{_course(losses, batches, dropout)}"
    if answer is LearningVerdict.DIVERGES:
        if not all(map(math.isfinite, losses)):
            step = next(number for number, loss in enumerate(losses) if not math.isfinite(loss))
            return f"this loop diverges: the loss on {what} is {losses[step]} at step {step}"
        return f"this loop diverges: the loss on {what} rose from {first:.4g} to {last:.4g} in {len(losses)} steps"
    return f"this loop is stuck: the loss on {what} was {first:.4g}, and is {last:.4g} after {len(losses)} steps"
