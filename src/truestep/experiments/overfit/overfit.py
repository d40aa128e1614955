"""Can this model and loop learn at all? The training sees one batch again and again; its loss must fall to the ground.

A model that cannot learn one batch by heart will not learn a data set: the loop, the loss or the labels are wrong, or
the learning rate is. Described in Andrej Karpathy's "A Recipe for Training Neural Networks" (2019).
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
from truestep.experiments.running.outcome import LOSSES, Named, Outcome, Variant

_LEARNT, _FALLEN, _FALLING, _RISEN = 0.1, 0.5, 0.9, 1.5
"""Parts of the first loss: what is left when a batch is learnt by heart, when the loop learns, when it does if the loss
still falls; and too much."""

_FRESH = 0.1
"""Part of the batches that may be other ones: a second loader has first batches of its own."""


class Answer(enum.StrEnum):
    """What one batch says about a loop."""

    LEARNS = "learns"
    FALLS = "falls"
    STUCK = "stuck"
    DIVERGES = "diverges"


@dataclass(frozen=True, slots=True)
class Overfit:
    """What came out.

    Attributes:
        answer: whether the loop can learn.
        sentence: the same for people.
        losses: of the steps on the first batches.
        outcome: of the run on the first batches.
        plain: of the run as the script is, made where the batch is not learnt by heart; None elsewhere.
        causes: why it does not learn, as far as the runs show it.
    """

    answer: Answer
    sentence: str
    losses: tuple[float, ...]
    outcome: Outcome
    plain: Outcome | None = None
    causes: tuple[str, ...] = ()


def overfit(bench: Bench, *, batches: int = 1, dropout: bool = True) -> Overfit:
    """Run a script on its first batches for ever, and judge its losses.

    Args:
        bench: the script, and for how many steps.
        batches: how many batches are learnt.
        dropout: whether dropout stays as it is.

    Raises:
        NoExperiment: the script did not come to its steps, or has no batch that could be repeated.
    """
    changes: list[Named] = [("first-batches", {"count": batches})]
    if not dropout:
        changes.append(("no-dropout", {}))
    looked: tuple[Named, ...] = (LOSSES, ("learning", {}))
    outcome = bench.run(Variant("first batches", tuple(changes), looked))
    losses = losses_of(outcome)
    _check(outcome, losses, batches)
    answer = judge(losses, batches)
    if outcome.how in ("crashed", "exited", "killed") and answer in (Answer.STUCK, Answer.FALLS):
        raise _ended_early(outcome, len(losses))
    sentence = _sentence(answer, _what(outcome, batches), losses, batches, dropout)
    plain = bench.run(Variant("as it is")) if answer is not Answer.LEARNS else None
    why: list[str] = []
    if answer in (Answer.STUCK, Answer.DIVERGES):
        why = causes.shown(outcome, batches)
        if not why and plain is not None and not plain.findings:

            def learns(factor: float) -> bool:
                scaled = (*changes, ("scaled-rates", {"factor": factor}))
                found = losses_of(bench.run(Variant(f"learning rate times {factor:g}", scaled, (LOSSES,))))
                return bool(found) and judge(found, batches) in (Answer.LEARNS, Answer.FALLS)

            why = causes.rate(outcome, losses, learns)
    return Overfit(answer, sentence, losses, outcome, plain, tuple(why))


def losses_of(outcome: Outcome) -> tuple[float, ...]:
    """Return the losses of the steps that had one."""
    return tuple(loss for loss in outcome.losses if loss is not None)


def _what(outcome: Outcome, batches: int) -> str:
    """Return what is learnt, as part of a sentence."""
    counts = outcome.changes["first-batches"]
    samples = counts["samples"]
    what = "one batch" if batches == 1 else f"{batches} batches"
    if counts.get("by_hand") and not counts["applied"]:
        what = "the batch that the script repeats by itself"
    if samples:
        what += f" of {samples} samples" if batches == 1 else f" ({samples} samples)"
    return what


def judge(losses: Sequence[float], batches: int = 1) -> Answer:
    """Say what losses on the same batches show.

    Args:
        losses: one for each step.
        batches: after how many steps the same batch comes again.

    >>> [str(judge([2.3, end])) for end in (0.01, 0.8, 2.2, 9.0, float("nan"))]
    ['learns', 'falls', 'stuck', 'diverges', 'diverges']
    """
    if not all(map(math.isfinite, losses)):
        return Answer.DIVERGES
    first, last = ends(losses, batches)
    if first <= 0:  # a loss without ground: log-likelihoods of densities
        return Answer.FALLS if last < first - _FALLEN * max(abs(first), 1e-3) else Answer.STUCK
    if last <= _LEARNT * first:
        return Answer.LEARNS
    if last <= _FALLEN * first or (last <= _FALLING * first and _still_falls(losses, batches)):
        return Answer.FALLS
    return Answer.DIVERGES if last > _RISEN * first else Answer.STUCK


def ends(losses: Sequence[float], batches: int) -> tuple[float, float]:
    """Return the mean of the first round over the batches, and of the last steps."""
    return fmean(losses[:batches]), fmean(losses[-_tail(losses, batches) :])


def _tail(losses: Sequence[float], batches: int) -> int:
    """Return how many steps are the end of a curve: whole rounds over the batches."""
    rounds = max(1, min(len(losses) // 20, 20) // batches)
    return rounds * batches


def _means(losses: Sequence[float], batches: int) -> list[float]:
    """Return the means over as many steps as the end has, step by step."""
    tail = _tail(losses, batches)
    return [fmean(losses[end - tail : end]) for end in range(tail, len(losses) + 1)] or [fmean(losses)]


def _still_falls(losses: Sequence[float], batches: int) -> bool:
    """Whether the last quarter of the steps still made a difference, and ends where the curve is lowest."""
    means = _means(losses, batches)
    return means[-1] < 0.97 * means[-1 - len(means) // 4] and means[-1] <= 1.05 * min(means)


def _course(losses: tuple[float, ...], batches: int, dropout: bool) -> str:
    """Return what the end of the curve looks like: it still falls, it has settled, or it was lower before."""
    first, last = ends(losses, batches)
    means = _means(losses, batches)
    best = min(range(len(means)), key=means.__getitem__)
    if last - means[best] > 0.1 * abs(first):
        return f", and was at {means[best]:.4g} in step {best + _tail(losses, batches)}: its steps go too far"
    if _still_falls(losses, batches):
        return f", and still falls; --steps {4 * len(losses)} shows more"
    hint = ", and so does dropout: try --no-dropout" if dropout else ""
    return f", and has settled; a loss with a floor (label smoothing) does that{hint}"


def _check(outcome: Outcome, losses: tuple[float, ...], batches: int) -> None:
    """Check that the first batches were learnt, and nothing else."""
    if not losses:
        raise without_steps(outcome, "losses of steps to compare")
    counts = outcome.changes.get("first-batches", {})
    again, fresh = counts.get("applied", 0) + counts.get("same", 0), counts.get("fresh", 0)
    if len(losses) <= batches:
        return
    if not again:
        raise NoExperiment(
            "no batch could be repeated: no loader gave one while gradients were on, and no model in training mode was "
            "called with data twice",
            expected="a loop over torch's DataLoader or a loader of truestep.Run, or calls of an nn.Module",
            remedy="give the script a loader over its data, or cut its data down to one batch",
            said=outcome.said,
        )
    if fresh > _FRESH * (again + fresh):
        what = "calls of models" if counts.get("by_hand") else "batches"
        raise NoExperiment(
            f"{fresh} of {again + fresh} {what} could not be repeated: other data was learnt as well",
            expected="the same batches in every step",
            remedy="cut the script's data down to one batch, and run it as it is",
            said=outcome.said,
        )
    if counts.get("loose", 0):
        raise NoExperiment(
            "the data of each step was repeated, and its targets could not be: the script computes its loss by itself",
            expected="a loss of torch.nn, or a model that computes it",
            remedy="use a loss of torch.nn.functional, or cut the script's data down to one batch",
            said=outcome.said,
        )


def _ended_early(outcome: Outcome, steps: int) -> NoExperiment:
    if outcome.how == "killed":
        return NoExperiment(
            f"the script was over its limit after {steps} steps on its first batches",
            expected="a run that comes to its steps",
            remedy="raise --limit or --memory, or lower --steps",
            said=outcome.said,
        )
    return NoExperiment(
        f"the script {outcome.how} after {steps} steps on its first batches",
        expected="a run that comes to its steps",
        remedy="mend what it says above; where it fails on a repeated batch only, cut its data down to one batch",
        said=outcome.said,
    )


def _sentence(answer: Answer, what: str, losses: tuple[float, ...], batches: int, dropout: bool) -> str:
    first, last = ends(losses, batches)
    fell = f"the loss on {what} fell from {first:.4g} to {last:.4g} in {len(losses)} steps"
    if answer is Answer.LEARNS:
        return f"this loop can learn: {fell}"
    if answer is Answer.FALLS:
        return f"this loop learns, but not by heart: {fell}{_course(losses, batches, dropout)}"
    if answer is Answer.DIVERGES:
        if not all(map(math.isfinite, losses)):
            step = next(number for number, loss in enumerate(losses) if not math.isfinite(loss))
            return f"this loop diverges: the loss on {what} is {losses[step]} at step {step}"
        return f"this loop diverges: the loss on {what} rose from {first:.4g} to {last:.4g} in {len(losses)} steps"
    return f"this loop is stuck: the loss on {what} was {first:.4g}, and is {last:.4g} after {len(losses)} steps"
