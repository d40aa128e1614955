"""One kill and its resumed run: the step at which it continues, and the verdict."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from truestep.experiments.instruments.state.trace import Print, Trace, compare, first_difference, is_rounding
from truestep.experiments.resume.kills import Kill
from truestep.experiments.resume.missing import Missing, digits, distance, missing
from truestep.experiments.running.outcome import RunOutcome

_STORED = 0.02
"""Largest relative difference of weights that were stored with fewer than 8 bits of mantissa."""


class ResumeVerdict(enum.StrEnum):
    """Verdict on one kill, or on all; each member is worse than those above it."""

    EXACT = "exact"
    ROUNDING = "equal within rounding"
    NOTHING_SAVED = "nothing was saved before the kill"
    UNREPEATABLE = "cannot be judged"
    DIFFERS = "differs"
    STARTED_AGAIN = "starts again"
    CRASHED = "cannot go on"


@dataclass(frozen=True, slots=True)
class KillTrial:
    """One kill and its resumed run.

    Attributes:
        kill: moment of the kill.
        verdict: verdict on the resumed run.
        done: number of finished steps at the kill.
        went_on: number of finished steps from which the resumed run continues; None if unknown.
        first: number of the first step that differs, from 1; None if there is none.
        missing: pieces of state that explain the difference, or that differ without effect so far.
        beyond: steps beyond those that were left, negative for fewer; 0 if the run was stopped.
        note: further remark.
        losses: losses of the resumed run.
        said: end of its output.
        in_folder: True if the interrupted write was of one of several files of a checkpoint.
    """

    kill: Kill
    verdict: ResumeVerdict
    done: int
    went_on: int | None = None
    first: int | None = None
    missing: tuple[Missing, ...] = ()
    beyond: int = 0
    note: str = ""
    losses: tuple[float | None, ...] = ()
    said: str = ""
    in_folder: bool = False

    @property
    def again(self) -> int:
        """Number of repeated steps."""
        return max(0, self.done - self.went_on) if self.went_on is not None else 0


def judge(whole: Trace, killed: Trace, resumed: Trace, kill: Kill, how: str, outcome: RunOutcome) -> KillTrial:
    """Judge whether a resumed run equals the uninterrupted one from the step at which it continues."""
    done = len(killed.steps)
    losses = tuple(step.loss for step in resumed.steps)
    if outcome.how in ("crashed", "interrupted", "killed") or (outcome.how == "exited" != how):
        note = outcome.last_line or f"it {outcome.how}"
        if resumed.steps:
            note = f"after {len(resumed.steps)} steps: {note}"
        beside = {write.path for write in whole.writes if write.steps == kill.step} - {kill.path}
        in_folder = any(Path(path).parent == Path(kill.path).parent != Path() for path in beside)
        return KillTrial(
            kill, ResumeVerdict.CRASHED, done, note=note, losses=losses, said=outcome.said, in_folder=in_folder
        )
    natural = how in ("finished", "exited") and outcome.how == how
    if not resumed.steps:
        note = f"it takes no step: steps {done + 1} to {len(whole.steps)} are never done"
        return KillTrial(
            kill, ResumeVerdict.DIFFERS, done, beyond=done - len(whole.steps), note=note, said=outcome.said
        )
    place = went_on(whole, done, resumed.steps[0])
    if place is None or (place == 0 and done):
        before = done + 1 if kill.write is None else kill.step  # the interrupted write does not count
        saved = [write.path for write in killed.writes if 0 < write.steps < before]
        if place is None and resumed.steps[0].reads:
            note = "its first weights match no step of the uninterrupted run"
            return KillTrial(kill, ResumeVerdict.DIFFERS, done, missing=(_no_weights(),), note=note, losses=losses)
        verdict = ResumeVerdict.STARTED_AGAIN if saved else ResumeVerdict.NOTHING_SAVED
        note = f"{done} steps are lost"
        note += f", though {saved[-1]} was written" if saved else ""
        return KillTrial(kill, verdict, done, 0, note=note, losses=losses)
    beyond = place + len(resumed.steps) - len(whole.steps)
    beyond = beyond if natural else min(beyond, 0) if outcome.how in ("finished", "exited") else 0
    pieces = missing(whole, place, resumed, whole=natural or beyond < 0)
    found = first_difference(whole.steps[place:], resumed.steps)
    first = place + found[0] + 1 if found is not None else None
    if first is None and beyond:
        first = min(len(whole.steps), place + len(resumed.steps)) + 1
    if first is None:
        verdict = ResumeVerdict.EXACT
    elif found is not None and not pieces_with_effect(pieces) and _rounded(whole, place, resumed, found[0]):
        verdict, pieces = ResumeVerdict.ROUNDING, ()
    else:
        verdict = ResumeVerdict.DIFFERS
    return KillTrial(kill, verdict, done, place, first, pieces, beyond, losses=losses)


def pieces_with_effect(pieces: Sequence[Missing]) -> list[Missing]:
    """Return the pieces that explain a difference; "unseen" is not one of them."""
    return [one for one in pieces if one.effect and one.piece != "unseen"]


def _rounded(whole: Trace, place: int, resumed: Trace, first: int) -> bool:
    one, other = whole.steps[place + first], resumed.steps[first]
    return set(compare(one, other).pieces) <= {"loss"} and is_rounding(one, other)


def went_on(whole: Trace, done: int, begins: Print) -> int | None:
    """Return the number of finished steps of the uninterrupted run at which its weights match those of a resumed run.

    If the weights match several steps, the other state decides. If they match none, the step with at least half of the
    tensors in common is taken, and else the step with equal weights in another precision. None if nothing matches.
    """
    alike = [(place, step) for place, step in enumerate(whole.steps) if step.optimizer == begins.optimizer]
    if begins.state and begins.weights == whole.steps[0].weights and not whole.steps[0].state:
        alike = [item for item in alike if item[1].state == begins.state] or alike
        if alike[0][1].state == begins.state:  # everything but the weights was restored
            return alike[0][0]
    same = [(place, step) for place, step in alike if step.weights == begins.weights]
    if same:
        return min(same, key=lambda item: (len(compare(item[1], begins).pieces), abs(item[0] - done)))[0]
    if whole.steps[-1].optimizer == begins.optimizer and whole.steps[-1].after == begins.weights:
        return len(whole.steps)
    theirs = digits(begins.weights)

    def shared(step: Print) -> int:
        return sum(one == other for one, other in zip(digits(step.weights), theirs, strict=False))

    partly = max(alike, key=lambda item: (shared(item[1]), item[0]), default=None)
    nearest = min(alike, key=lambda item: distance(item[1].sample, begins.sample), default=None)
    if partly is None or nearest is None:
        return None
    if 2 * shared(partly[1]) >= len(theirs):
        return partly[0]
    if distance(nearest[1].sample, begins.sample) < _STORED:
        return nearest[0]
    return partly[0] if shared(partly[1]) else None


def _no_weights() -> Missing:
    return Missing("weights", "its first weights match no step")
