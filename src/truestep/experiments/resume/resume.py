"""Does a resumed run equal the uninterrupted one? Kill a script, run it again, and compare step by step.

Each run writes checksums of all state that a training carries from step to step. The step at which a resumed run
continues is found by its weights, not by its output.
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
"""Largest relative difference of weights that were stored with fewer than 8 bits of mantissa."""


class Verdict(enum.StrEnum):
    """Verdict on one kill, or on all; each member is worse than those above it."""

    EXACT = "exact"
    ROUNDING = "equal within rounding"
    NOTHING_SAVED = "nothing was saved before the kill"
    UNREPEATABLE = "cannot be told"
    DIFFERS = "differs"
    ANEW = "starts anew"
    CRASHED = "cannot go on"


@dataclass(frozen=True, slots=True)
class Kill:
    """The moment at which a run is killed.

    Attributes:
        step: number of finished steps, of all optimizers together.
        moment: "step": right after this step, "backward": in the next backward pass, "write": during a write of a file.
        write: index of this write, from 0.
        path: path of the file.
    """

    step: int
    moment: str = "step"
    write: int | None = None
    path: str = ""

    @property
    def change(self) -> Named:
        """The change of the run that kills it."""
        step = self.step if self.write is None else None
        return "killed", {"step": step, "moment": self.moment, "write": self.write}

    def __str__(self) -> str:
        if self.write is not None:
            return f"while writing {Path(self.path).name}, after step {self.step}"
        return f"after step {self.step}" if self.moment == "step" else f"in step {self.step + 1}"


@dataclass(frozen=True, slots=True)
class Trial:
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
        """Number of repeated steps."""
        return max(0, self.done - self.went_on) if self.went_on is not None else 0


@dataclass(frozen=True, slots=True)
class Resume:
    """Result of the experiment.

    Attributes:
        steps: number of steps of the uninterrupted run.
        how: its end, such as "finished" or "stopped".
        writes: number of its writes of files of state.
        losses: losses of its steps.
        trials: one per kill.
        interrupted: True if Ctrl-C stopped the experiment before all kills were tried.
    """

    steps: int
    how: str
    writes: int
    losses: tuple[float | None, ...]
    trials: tuple[Trial, ...]
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Worst verdict of all kills."""
        order = list(Verdict)
        return max((trial.verdict for trial in self.trials), key=order.index)

    @property
    def missing(self) -> tuple[tuple[Missing, int], ...]:
        """Each missing piece once, with the number of kills that show it; pieces with an effect first."""
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
        bench: the script and the number of steps.
        resume_arguments: arguments appended at the resume. One with `*`, `?` or `[` in it stands for the newest file
            or folder that matches; if none matches, nothing is appended.
        kills: number of kills.
        seed: seed for the choice of the moments.
        at: steps after which to kill, in place of chosen ones.
        during_save: True places one kill in the middle of a write.

    Raises:
        NoExperiment: the uninterrupted run failed or took too few steps, or a run exceeded its limit.
    """
    whole, outcome = _uninterrupted(bench)
    planned = plan(whole, kills, seed, during_save) if not at else [Kill(step) for step in at]
    for kill in planned:
        if kill.write is None and not 0 < kill.step < len(whole.steps):
            raise NoExperiment(
                f"--at must be a step from 1 to {len(whole.steps) - 1}, got {kill.step}",
                remedy="pass another step, or raise --steps",
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
    """Choose the kills: spread over the steps after the first save, and one during a later save.

    Args:
        whole: the uninterrupted run.
        kills: number of kills.
        seed: seed of the choice.
        during_save: True places one kill during a write.
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
            f"the uninterrupted run {'ran out of memory' if outcome.how == 'killed' else outcome.how}",
            remedy="fix the error above, or pass arguments with which the script trains",
            said=outcome.said,
        )
    if not whole.steps and outcome.children:
        raise without_steps(outcome, "expected an optimizer that steps at least twice, in the process of the script")
    if len(whole.steps) < 2:
        raise NoExperiment(
            f"the script took {len(whole.steps) or 'no'} step{'s' * (len(whole.steps) != 1)}",
            expected="expected an optimizer that steps at least twice, in the process of the script",
            remedy="pass arguments with which the script trains, and move a finished run out of its folder",
            said=outcome.said,
        )
    return whole, outcome


def _variant(name: str, start: int, *changes: Named, arguments: tuple[str, ...] | None = None) -> Variant:
    """Return a variant; `start` seeds the random generators that the script does not seed."""
    return Variant(name, (("seeded", {"offset": 0, "start": start}), *changes), _LOOKED_AT, arguments)


def _check_limit(bench: Bench, outcome: Outcome) -> None:
    if outcome.how == "killed" and outcome.seconds >= bench.limit_s:
        raise NoExperiment(
            f"the run ({outcome.variant.name}) exceeded its limit of {bench.limit_s:g} s",
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
            note = unlike or f"the script ended before the kill ({kill})"
            return Trial(kill, Verdict.UNREPEATABLE, len(killed.steps), note=note, said=died.said)
        arguments = (*bench.target.arguments, *expanded(resume_arguments, place.copy))
        # A restarted process draws other random numbers than the first one, unless the script seeds them.
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
    """Return a sentence if two runs differ without an interruption; "" if they are equal."""
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
    """Return arguments with each pattern replaced by the newest matching file or folder; () if one has no match.

    Args:
        arguments: arguments of the resumed run.
        folder: its working folder.
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
    """Judge whether a resumed run equals the uninterrupted one from the step at which it continues.

    Args:
        whole: the uninterrupted run.
        killed: the killed run, equal to `whole` up to the kill.
        resumed: the resumed run.
        kill: moment of the kill.
        how: end of the uninterrupted run.
        outcome: outcome of the resumed run.
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
        before = done + 1 if kill.write is None else kill.step  # the interrupted write does not count
        saved = [write.path for write in killed.writes if 0 < write.steps < before]
        if place is None and resumed.steps[0].reads:
            note = "its first weights match no step of the uninterrupted run"
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
    """Return the pieces that explain a difference; "unseen" is not one of them."""
    return [one for one in pieces if one.effect and one.piece != "unseen"]


def _rounded(whole: Trace, place: int, resumed: Trace, first: int) -> bool:
    one, other = whole.steps[place + first], resumed.steps[first]
    return set(compare(one, other).pieces) <= {"loss"} and is_rounding(one, other)


def went_on(whole: Trace, done: int, begins: Print) -> int | None:
    """Return the number of finished steps of the uninterrupted run at which its weights match those of a resumed run.

    If the weights match several steps, the other state decides. If they match none, the step with at least half of the
    tensors in common is taken, and else the step with equal weights in another precision. None if nothing matches.

    Args:
        whole: the uninterrupted run.
        done: number of finished steps at the kill.
        begins: first step of the resumed run.
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
