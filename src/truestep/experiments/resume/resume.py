"""Is a resumed run the one that was not interrupted? A script is killed, run again, and compared step by step.

Each run writes checksums of all that a training carries from step to step. The step at which a resumed run goes on is
the one whose weights it has, not one that it claims.
"""

from __future__ import annotations

import enum
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from truestep.errors import NoExperiment
from truestep.experiments.resume.missing import Missing, digits, distance, missing
from truestep.experiments.resume.trace import Print, Trace, compare, first_difference, is_rounding, read_trace
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Named, Outcome, Variant

_LOOKED_AT: tuple[Named, ...] = (("fingerprints", {}),)
_STORED = 0.02
"""Largest relative difference of weights that were stored in a precision of less than 8 bits of mantissa."""


class Verdict(enum.StrEnum):
    """What came of one kill, or of all; a later one is worse."""

    EXACT = "exact"
    ROUNDING = "equal within rounding"
    NOTHING_SAVED = "nothing was saved before the kill"
    UNREPEATABLE = "cannot be told"
    DIFFERS = "differs"
    ANEW = "starts anew"
    CRASHED = "cannot go on"


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a run is killed.

    Attributes:
        step: after so many steps of all optimizers together.
        moment: "step" for right after it, "backward" for the next backward pass, "write" for a write of a file.
        write: the number of that write, from 0.
        path: of that file.
    """

    step: int
    moment: str = "step"
    write: int | None = None
    path: str = ""

    @property
    def change(self) -> Named:
        """What kills it."""
        step = self.step if self.write is None else None
        return "killed", {"step": step, "moment": self.moment, "write": self.write}

    def __str__(self) -> str:
        if self.write is not None:
            return f"while writing {Path(self.path).name}, after step {self.step}"
        return f"after step {self.step}" if self.moment == "step" else f"in step {self.step + 1}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One kill, and the run that went on.

    Attributes:
        kill: where.
        verdict: of it.
        done: steps that were done when it was killed.
        went_on: how many of them were done for the run that went on; None where that is not known.
        first: the number of the first step that differs, from 1; None where there is none.
        missing: pieces of state that explain it, or that differ and explain nothing yet.
        beyond: steps that the run took more than were left, or less where negative; 0 where it was ended.
        note: what else there is to say.
        losses: of the run that went on.
        said: the end of what it wrote.
        in_folder: whether the file whose write was killed is one of several of one checkpoint.
    """

    kill: Kill
    verdict: Verdict
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
        """Steps that were done twice."""
        return max(0, self.done - self.went_on) if self.went_on is not None else 0


@dataclass(frozen=True, slots=True)
class Resume:
    """What came out.

    Attributes:
        steps: of the uninterrupted run.
        how: it ended.
        writes: how many files of state it wrote, the last ones of their paths.
        losses: of its steps.
        trials: one for each kill.
        interrupted: whether a person ended it before all kills were tried.
    """

    steps: int
    how: str
    writes: int
    losses: tuple[float | None, ...]
    trials: tuple[Trial, ...]
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """The worst of all kills."""
        order = list(Verdict)
        return max((trial.verdict for trial in self.trials), key=order.index)

    @property
    def missing(self) -> tuple[tuple[Missing, int], ...]:
        """Each missing piece once, with how many kills show it; those that explain most first."""
        found: dict[str, tuple[Missing, int]] = {}
        for trial in self.trials:
            for one in trial.missing:
                known, count = found.get(one.piece, (one, 0))
                found[one.piece] = (known if known.effect else one, count + 1)
        return tuple(sorted(found.values(), key=lambda item: not item[0].effect))


def verify_resume(
    bench: Bench,
    resume_arguments: Sequence[str] = (),
    *,
    kills: int = 3,
    seed: int = 0,
    at: Sequence[int] = (),
    during_save: bool = True,
) -> Resume:
    """Kill a script several times, each time from its beginning; resume it, and compare with the uninterrupted run.

    Args:
        bench: the script, and for how many steps.
        resume_arguments: added to the script's own when it is resumed. One with `*`, `?` or `[` in it stands for the
            newest file or folder that it fits; where there is none, nothing is added.
        kills: how many.
        seed: of where they are.
        at: steps after which it is killed, instead of chosen ones.
        during_save: whether one of them is in the midst of a write.

    Raises:
        NoExperiment: the uninterrupted run did not come to its steps, or a run was over its limit.
    """
    whole, outcome = _uninterrupted(bench)
    planned = plan(whole, kills, seed, during_save) if not at else [Kill(step) for step in at]
    for kill in planned:
        if kill.write is None and not 0 < kill.step < len(whole.steps):
            raise NoExperiment(
                f"there is no step {kill.step} to be killed after",
                expected=f"a step from 1 to {len(whole.steps) - 1}",
                remedy="give another --at, or raise --steps",
            )
    trials: list[Trial] = []
    try:
        for number, kill in enumerate(planned):
            trials.append(_trial(bench, whole, outcome, kill, tuple(resume_arguments), number))
    except KeyboardInterrupt:
        if not trials:
            raise
    losses = tuple(step.loss for step in whole.steps)
    cut = len(trials) < len(planned)
    return Resume(len(whole.steps), outcome.how, len(whole.writes), losses, tuple(trials), cut)


def plan(whole: Trace, kills: int, seed: int, during_save: bool) -> list[Kill]:
    """Choose where to kill: spread over the steps after the first save, and once in the midst of a later one.

    Args:
        whole: the uninterrupted run.
        kills: how many.
        seed: of the choice.
        during_save: whether one is during a write.
    """
    chance, last = random.Random(seed), len(whole.steps) - 1
    saved = [write.steps for write in whole.writes if write.steps]
    low = saved[0] + 1 if saved and saved[0] < last else 1
    later = [n for n, write in enumerate(whole.writes) if saved and saved[0] < write.steps <= last]
    within = later or [n for n, write in enumerate(whole.writes) if write.steps]
    planned: list[Kill] = []
    if during_save and kills > 1 and within:
        number = chance.choice(within)
        write = whole.writes[number]
        planned.append(Kill(write.steps, "write", number, write.path))
    left = kills - len(planned)
    edges = [low + (last + 1 - low) * number // left for number in range(left + 1)] if left else []
    for number in range(left):
        start, end = edges[number], max(edges[number] + 1, edges[number + 1])
        planned.append(Kill(min(last, chance.randrange(start, end)), ("step", "backward")[number % 2]))
    return sorted(planned, key=lambda kill: kill.step)


def _uninterrupted(bench: Bench) -> tuple[Trace, Outcome]:
    with bench.place() as place:
        outcome = place.run(_variant("uninterrupted", 0), anew=True)
        whole = read_trace(place.results / "prints.jsonl")
    _check_limit(bench, outcome)
    if outcome.how in ("crashed", "interrupted", "killed"):
        raise NoExperiment(
            f"the script {'ran out of memory' if outcome.how == 'killed' else outcome.how} before anybody killed it",
            expected="a run that comes to its end",
            remedy="mend what it says above, or give arguments with which it trains",
            said=outcome.said,
        )
    if not whole.steps and outcome.children:
        raise without_steps(outcome, "an optimizer that steps at least twice, in the process of the script")
    if len(whole.steps) < 2:
        raise NoExperiment(
            f"the script took {len(whole.steps) or 'no'} step{'s' * (len(whole.steps) != 1)}",
            expected="an optimizer that steps at least twice, in the process of the script",
            remedy="give arguments with which it trains, and move a finished run out of its folder",
            said=outcome.said,
        )
    return whole, outcome


def _variant(name: str, start: int, *changes: Named, arguments: tuple[str, ...] | None = None) -> Variant:
    """Return a variant whose generators begin with a start of its own, where the script does not seed them."""
    return Variant(name, (("seeded", {"offset": 0, "start": start}), *changes), _LOOKED_AT, arguments)


def _check_limit(bench: Bench, outcome: Outcome) -> None:
    if outcome.how == "killed" and outcome.seconds >= bench.limit_s:
        raise NoExperiment(
            f"the run ({outcome.variant.name}) was over its limit of {bench.limit_s:g} s",
            expected="runs that come to their end",
            remedy="raise --limit, or lower --steps",
            said=outcome.said,
        )


def _trial(
    bench: Bench, whole: Trace, outcome: Outcome, kill: Kill, resume_arguments: tuple[str, ...], number: int
) -> Trial:
    with bench.place() as place:
        died = place.run(_variant(f"killed {kill}", 0, kill.change), anew=True)
        killed = read_trace(place.results / "prints.jsonl")
        _check_limit(bench, died)
        if (unlike := _unlike(whole, killed, f"two uninterrupted runs differ already at step {{}}, before {kill}")) or (
            died.how != "killed"
        ):
            note = unlike or f"the script ended before it was to be killed ({kill})"
            return Trial(kill, Verdict.UNREPEATABLE, len(killed.steps), note=note, said=died.said)
        arguments = (*bench.target.arguments, *expanded(resume_arguments, place.copy))
        # A process that is started again does not begin with the random numbers of the first one.
        changes: tuple[Named, ...] = () if resume_arguments else (("resume-auto", {}),)
        resumed_outcome = place.run(_variant(f"resumed after {kill}", 1 + number, *changes, arguments=arguments))
        resumed = read_trace(place.results / "prints.jsonl")
    _check_limit(bench, resumed_outcome)
    trial = judge(whole, killed, resumed, kill, outcome.how, resumed_outcome)
    if trial.verdict in (Verdict.DIFFERS, Verdict.ROUNDING) and not any(
        one.effect and one.piece != "unseen" for one in trial.missing
    ):
        again, _ = _uninterrupted(bench)
        if unlike := _unlike(whole, again, "two uninterrupted runs differ already at step {}"):
            return Trial(kill, Verdict.UNREPEATABLE, trial.done, trial.went_on, note=unlike)
    return trial


def _unlike(whole: Trace, other: Trace, sentence: str) -> str:
    """Return what there is to say where a run that nobody interrupted is not the other one; "" where it is."""
    found = first_difference(whole.steps, other.steps)
    if found is None:
        return ""
    place, difference = found
    pieces = [name for name in ("weights", "batches", "loss") if name in difference.pieces] or ["results"]
    random_states = [name.removeprefix("random ") for name in difference.pieces if name.startswith("random")]
    if is_rounding(whole.steps[place], other.steps[place]) and pieces != ["weights"]:
        pieces = [*pieces, "by rounding"]
    drawn = f"; random states of {', '.join(random_states)} as well" if random_states else ""
    return f"{sentence.format(place + 1)} ({', '.join(pieces)}{drawn})"


def expanded(arguments: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return arguments with each pattern replaced by the newest file or folder that it fits; none where one fits none.

    Args:
        arguments: for the resumed run.
        folder: where it runs.
    """
    result = []
    for argument in arguments:
        option, equals, pattern = argument.rpartition("=")
        if set(pattern) & set("*?["):
            found = sorted(glob(pattern, root_dir=folder), key=lambda path: os.lstat(folder / path).st_mtime_ns)
            if not found:
                return ()
            argument = f"{option}{equals}{found[-1]}"
        result.append(argument)
    return tuple(result)


def judge(whole: Trace, killed: Trace, resumed: Trace, kill: Kill, how: str, outcome: Outcome) -> Trial:
    """Say whether a resumed run is the uninterrupted one from where it goes on.

    Args:
        whole: the uninterrupted run.
        killed: the run that was killed, the same up to there.
        resumed: the run that went on.
        kill: where.
        how: the uninterrupted run ended.
        outcome: of the run that went on.
    """
    done = len(killed.steps)
    losses = tuple(step.loss for step in resumed.steps)
    if outcome.how in ("crashed", "interrupted", "killed") or (outcome.how == "exited" != how):
        note = outcome.last_line or f"it {outcome.how}"
        if resumed.steps:
            note = f"after {len(resumed.steps)} steps: {note}"
        beside = {write.path for write in whole.writes if write.steps == kill.step} - {kill.path}
        in_folder = any(Path(path).parent == Path(kill.path).parent != Path() for path in beside)
        return Trial(kill, Verdict.CRASHED, done, note=note, losses=losses, said=outcome.said, in_folder=in_folder)
    natural = how in ("finished", "exited") and outcome.how == how
    if not resumed.steps:
        note = f"it takes no step: steps {done + 1} to {len(whole.steps)} are never done"
        return Trial(kill, Verdict.DIFFERS, done, beyond=done - len(whole.steps), note=note, said=outcome.said)
    place = went_on(whole, done, resumed.steps[0])
    if place is None or (place == 0 and done):
        before = done + 1 if kill.write is None else kill.step  # the write that was killed is none
        saved = [write.path for write in killed.writes if 0 < write.steps < before]
        if place is None and resumed.steps[0].reads:
            note = "its first weights are those of no step of the uninterrupted run"
            return Trial(kill, Verdict.DIFFERS, done, missing=(_no_weights(),), note=note, losses=losses)
        verdict = Verdict.ANEW if saved else Verdict.NOTHING_SAVED
        note = f"{done} steps are lost"
        note += f", though {saved[-1]} was written" if saved else ""
        return Trial(kill, verdict, done, 0, note=note, losses=losses)
    beyond = place + len(resumed.steps) - len(whole.steps)
    beyond = beyond if natural else min(beyond, 0) if outcome.how in ("finished", "exited") else 0
    pieces = missing(whole, place, resumed, whole=natural or beyond < 0)
    found = first_difference(whole.steps[place:], resumed.steps)
    first = place + found[0] + 1 if found is not None else None
    if first is None and beyond:
        first = min(len(whole.steps), place + len(resumed.steps)) + 1
    if first is None:
        verdict = Verdict.EXACT
    elif found is not None and not pieces_with_effect(pieces) and _rounded(whole, place, resumed, found[0]):
        verdict, pieces = Verdict.ROUNDING, ()
    else:
        verdict = Verdict.DIFFERS
    return Trial(kill, verdict, done, place, first, pieces, beyond, losses=losses)


def pieces_with_effect(pieces: Sequence[Missing]) -> list[Missing]:
    """Return the pieces that explain a difference, but for that which nobody has seen."""
    return [one for one in pieces if one.effect and one.piece != "unseen"]


def _rounded(whole: Trace, place: int, resumed: Trace, first: int) -> bool:
    one, other = whole.steps[place + first], resumed.steps[first]
    return set(compare(one, other).pieces) <= {"loss"} and is_rounding(one, other)


def went_on(whole: Trace, done: int, begins: Print) -> int | None:
    """Return how many steps of the uninterrupted run are done for a run that begins with these weights.

    Where the weights are those of several steps, the rest decides; where they are those of none, most of their tensors
    do, and then whether they are those of a step in another precision. None where nothing fits.

    Args:
        whole: the uninterrupted run.
        done: how many steps were done when it was killed.
        begins: the first step of the run that goes on.
    """
    alike = [(place, step) for place, step in enumerate(whole.steps) if step.optimizer == begins.optimizer]
    if begins.state and begins.weights == whole.steps[0].weights and not whole.steps[0].state:
        alike = [item for item in alike if item[1].state == begins.state] or alike
        if alike[0][1].state == begins.state:  # all but the weights was put back
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
    return Missing("weights", "those that it begins with are those of no step")
