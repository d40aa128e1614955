"""Does a resumed run equal the uninterrupted one? Kill a script, run it again, and compare step by step.

Each run writes checksums of all state that a training carries from step to step. The step at which a resumed run
continues is found by its weights, not by its output.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from truestep.errors import NoExperiment
from truestep.experiments.instruments.state.trace import Trace, first_difference, is_rounding, read_trace
from truestep.experiments.resume.kills import Kill, plan
from truestep.experiments.resume.missing import Missing
from truestep.experiments.resume.trial import KillTrial, ResumeVerdict, judge
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Named, RunOutcome, Variant

_LOOKED_AT: tuple[Named, ...] = (("fingerprints", {}),)


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
    trials: tuple[KillTrial, ...]
    interrupted: bool = False

    @property
    def verdict(self) -> ResumeVerdict:
        """Worst verdict of all kills."""
        order = list(ResumeVerdict)
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
    trials: list[KillTrial] = []
    try:
        for number, kill in enumerate(planned):
            trials.append(_trial(bench, whole, outcome, kill, tuple(resume_arguments), number))
    except KeyboardInterrupt:
        if not trials:
            raise
    losses = tuple(step.loss for step in whole.steps)
    cut = len(trials) < len(planned)
    return Resume(len(whole.steps), outcome.how, len(whole.writes), losses, tuple(trials), cut)


def _uninterrupted(bench: Bench) -> tuple[Trace, RunOutcome]:
    with bench.place() as place:
        outcome = place.run(_variant("uninterrupted", 0), from_start=True)
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


def _check_limit(bench: Bench, outcome: RunOutcome) -> None:
    if outcome.how == "killed" and outcome.seconds >= bench.limit_s:
        raise NoExperiment(
            f"the run ({outcome.variant.name}) exceeded its limit of {bench.limit_s:g} s",
            remedy="raise --limit, or lower --steps",
            said=outcome.said,
        )


def _trial(
    bench: Bench, whole: Trace, outcome: RunOutcome, kill: Kill, resume_arguments: tuple[str, ...], number: int
) -> KillTrial:
    with bench.place() as place:
        died = place.run(_variant(f"killed {kill}", 0, kill.change), from_start=True)
        killed = read_trace(place.results / "prints.jsonl")
        _check_limit(bench, died)
        if (unlike := _unlike(whole, killed, f"two uninterrupted runs differ already at step {{}}, before {kill}")) or (
            died.how != "killed"
        ):
            note = unlike or f"the script ended before the kill ({kill})"
            return KillTrial(kill, ResumeVerdict.UNREPEATABLE, len(killed.steps), note=note, said=died.said)
        arguments = (*bench.target.arguments, *expanded(resume_arguments, place.copy))
        # A restarted process draws other random numbers than the first one, unless the script seeds them.
        changes: tuple[Named, ...] = () if resume_arguments else (("resume-auto", {}),)
        resumed_outcome = place.run(_variant(f"resumed, {kill}", 1 + number, *changes, arguments=arguments))
        resumed = read_trace(place.results / "prints.jsonl")
    _check_limit(bench, resumed_outcome)
    trial = judge(whole, killed, resumed, kill, outcome.how, resumed_outcome)
    if trial.verdict in (ResumeVerdict.DIFFERS, ResumeVerdict.ROUNDING) and not any(
        one.effect and one.piece != "unseen" for one in trial.missing
    ):
        again, _ = _uninterrupted(bench)
        if unlike := _unlike(whole, again, "two uninterrupted runs differ already at step {}"):
            return KillTrial(kill, ResumeVerdict.UNREPEATABLE, trial.done, trial.went_on, note=unlike)
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
    """Return arguments with each pattern replaced by the newest matching file or folder; () if one has no match."""
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
