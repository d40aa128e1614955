"""How much does each recommended speed-up gain on this script? Try each alone, then combine those that gain.

A speed-up is applied from outside and timed against the unchanged script, in turns (`tune.turns`). An apparent gain is
measured again in new processes, and the losses with it are compared with those of the unchanged script.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

from truestep.errors import NoExperiment, UsageError
from truestep.experiments.changes.speedups import SPEEDUPS, Speedup
from truestep.experiments.changes.speedups.nothing import Nothing
from truestep.experiments.figures.speedup_statistics import MARGIN, Judged, SpeedVerdict, deviation, judge
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import LOSSES, Named, RunOutcome, Variant
from truestep.experiments.running.outcome_cache import user_caches
from truestep.experiments.tune.trial_order import in_order
from truestep.experiments.tune.tuned import SpeedupRow, Tuned
from truestep.experiments.tune.turns import Pair, TurnPlan, take_turns

CONTROL = Nothing.name
_SEEDED: Named = ("seeded", {"offset": 0})
_CALM: Named = ("no-dropout", {})
_WARM_UP = 5
_PILOT_S = 3.0
_TURNS = 8
_FEWEST_TURNS = 5
_TURN_S = (0.1, 1.0)
"""Shortest and longest turn, in seconds."""
_CHECKED_STEPS = 40
_LESS_MEMORY = 0.95


def chosen(only: Sequence[str], skip: Sequence[str], larger_batch: bool = False) -> list[str]:
    """Return the names of the speed-ups to try.

    Args:
        only: names to try; empty for all that are not on request.
        skip: names to leave out.
        larger_batch: True also tries larger batches.

    Raises:
        UsageError: unknown name.
    """
    for name in (*only, *skip):
        if name not in SPEEDUPS:
            raise UsageError(
                f'unknown speed-up "{name}"',
                expected=f"expected one of {', '.join(name for name in SPEEDUPS if name != CONTROL)}",
                remedy="see `truestep tune --list`",
            )
    names = list(only) or [name for name, speedup in SPEEDUPS.items() if not speedup.on_request and name != CONTROL]
    if larger_batch and "larger-batch" not in names:
        names.append("larger-batch")
    return [name for name in SPEEDUPS if name in names and name not in skip]


def tune(
    bench: Bench, names: Iterable[str], budget_s: float = 300.0, says: Callable[[str], None] = lambda text: None
) -> Tuned:
    """Measure speed-ups on a script.

    Args:
        bench: the script, in a single process; outcomes are not cached.
        names: names of the speed-ups.
        budget_s: approximate duration in seconds; speed-ups that do not fit are left out and listed in the result.
        says: called with each line of progress.

    Raises:
        NoExperiment: the script takes too few steps.
    """
    with _cache() as cache:
        quiet = replace(bench, cache=None, steps=None, begins=lambda variant: None)
        tuning = _Tuning(quiet, budget_s, says, cache)
        try:
            tuning.run(list(names))
        except KeyboardInterrupt:
            if not tuning.result.step_s:
                raise
            tuning.result.interrupted = True
    order = {status: place for place, status in enumerate(("gain", "saves memory", "losses differ"))}
    tuning.result.rows.sort(
        key=lambda row: (order.get(row.status, 9), row.judged is None, -row.judged.ratio if row.judged else 0.0)
    )
    return tuning.result


class _Tuning:
    def __init__(self, bench: Bench, budget_s: float, says: Callable[[str], None], cache: str | None) -> None:
        self._cache = cache
        self._budget_s = budget_s
        self._bench = bench
        self._ends = time.monotonic() + budget_s
        self._says = says
        self.result = Tuned()
        self._plan = TurnPlan(_WARM_UP, 1, _TURNS)
        self._pair_s = 10.0
        self._references: dict[bool, tuple[float | None, ...]] = {}
        self._margin = MARGIN
        self._most_steps = _CHECKED_STEPS

    def run(self, names: list[str]) -> None:
        """Measure the phases of the script, try each speed-up, then combine those that gain."""
        self._says("the phases of the script")
        pilot = self._bench.run(
            Variant("as it is", (_SEEDED,), (("survey", {"warm_up": _WARM_UP, "seconds": _PILOT_S}),))
        )
        self._look(pilot)
        result = self.result
        if result.device == "cpu":
            result.elsewhere = tuple(name for name in names if SPEEDUPS[name].accelerator)
        alone = [name for name in names if name not in result.elsewhere]
        if result.device != "cpu":
            alone = [name for name in alone if not SPEEDUPS[name].cpu]
        idle = self._idle(alone)
        result.rows += [SpeedupRow((name,), "does not apply") for name in idle]
        alone = in_order([name for name in alone if name not in idle], result.phases)
        self._draw_up(pilot, len(alone))
        result.control = self._try((CONTROL,), f"1 of {len(alone) + 1}: the script against itself")
        if result.control.judged is not None and math.isfinite(result.control.judged.ratio):
            noise = abs(math.log(result.control.judged.ratio))
            self._margin = max(MARGIN, 1.5 * noise)
        for number, name in enumerate(alone, 2):
            if not self._fits():
                result.left_out.append(name)
                continue
            result.rows.append(self._try((name,), f"{number} of {len(alone) + 1}: {name}"))
        if result.left_out:  # 1.5: gains are measured twice, and again in combination
            result.enough_s = self._budget_s + 1.5 * len(result.left_out) * self._pair_s
        self._combine()

    def _idle(self, names: Sequence[str]) -> list[str]:
        """Return the safe speed-ups that do not apply to this script."""
        asked = [name for name in names if SPEEDUPS[name].combines]
        if not asked:
            return []
        self._says("which speed-ups apply")
        timed = (("survey", {"warm_up": _WARM_UP, "seconds": _PILOT_S}),)
        outcome = self._bench.run(Variant("applicable speed-ups", _changes(asked), timed))
        if outcome.how not in ("finished", "stopped"):
            return []
        return [name for name in asked if not outcome.changes.get(name, {}).get("applied")]

    def _look(self, pilot: RunOutcome) -> None:
        survey = pilot.results.get("survey", {})
        steps = int(survey.get("steps", 0))
        fewest = _WARM_UP + _FEWEST_TURNS * 3
        if not survey.get("all_steps"):
            raise without_steps(pilot, f"expected at least {fewest} steps, to time them")
        if not steps or (survey.get("whole") and int(survey["all_steps"]) < fewest):
            ended = {"crashed": "crashed", "killed": "exceeded its limit"}.get(pilot.how, "ended")
            raise NoExperiment(
                f"the script {ended} after {survey.get('all_steps', 0)} steps of its optimizers",
                expected=f"expected at least {fewest} steps, to time them",
                remedy="fix the error above, or pass arguments for a longer training",
                said=pilot.said,
            )
        result = self.result
        result.device = str(survey["device"])
        result.step_s = float(survey["seconds"]) / steps
        result.phases = {name: part * result.step_s for name, part in survey["phases"].items()}
        result.peak_bytes = pilot.peak_bytes
        if survey.get("whole"):
            self._most_steps = min(_CHECKED_STEPS, int(survey["all_steps"]) - 1)

    def _draw_up(self, pilot: RunOutcome, count: int) -> None:
        """Choose the length of turns, and announce the whole duration."""
        survey = pilot.results["survey"]
        step_s, seconds = self.result.step_s, float(survey["seconds"])
        starts_s = 1.4 * max(0.5, pilot.seconds - seconds)  # two processes start at the same time
        pairs = 1 + count + max(2, count // 2)
        left_s = max(0.0, self._ends - time.monotonic())
        turns = _TURNS if 2 * _TURNS * 4 * step_s < 60 else _FEWEST_TURNS
        least_s = max(_TURN_S[0], starts_s / 2 / (2 * turns))  # starting dominates shorter turns: nothing is saved
        turn_s = min(max((left_s / pairs - starts_s) / (2 * turns), least_s), max(_TURN_S[1], least_s))
        steps = max(1, round(turn_s / step_s))
        if survey["whole"]:
            room = int(survey["all_steps"]) - _WARM_UP - 1
            if room < turns * 3:
                turns = _FEWEST_TURNS
            steps = max(1, min(steps, room // turns - 2))
        self._plan = TurnPlan(_WARM_UP, steps, turns)
        self._pair_s = starts_s + 2 * turns * (steps + 2) * step_s
        minutes = max(1, round(min(pairs * self._pair_s, left_s) / 60))
        self._says(f"{count} speed-ups and a control, each {turns} times {steps} steps in turns: about {minutes} min")

    def _fits(self) -> bool:
        return time.monotonic() + self._pair_s < self._ends

    def _try(self, names: tuple[str, ...], text: str, under: tuple[str, ...] = ()) -> SpeedupRow:
        """Time speed-ups on top of others; measure an apparent gain again, and compare its losses.

        Args:
            names: the speed-ups to try.
            text: the line of progress.
            under: speed-ups that both variants have.
        """
        self._say(text)
        pairs = [self._pair(names, under)]
        last = pairs[0].outcomes[1]
        if row := _without_times(names, pairs[0]):
            return row
        judged = self._judge(names, pairs)
        saves = _memory(pairs[0]) or 1.0
        for_memory = any(SPEEDUPS[name].saves == "memory" for name in names)
        wanted = judged.says is SpeedVerdict.GAIN or (for_memory and saves < _LESS_MEMORY)
        if wanted and names != (CONTROL,):
            self._say(f"{text}, once more")
            again = self._pair(names, under)
            if len(again.ratios) >= _FEWEST_TURNS:
                pairs.append(again)
                judged = self._judge(names, pairs)
        memory = max((_memory(pair) for pair in pairs), key=lambda part: part or math.inf)
        once_s = float(last.results.get("turns", {}).get("aside_s", 0.0))
        status, apart, note = str(judged.says), None, ""
        if for_memory and memory is not None and memory < _LESS_MEMORY:
            status = "saves memory"
        if status in ("gain", "saves memory") and names != (CONTROL,):
            self._say(f"{text}, its losses")
            apart, note = self._apart((*under, *names))
            if note:
                status = "losses differ"
        return SpeedupRow(names, status, judged, memory, once_s, apart, note)

    def _say(self, text: str) -> None:
        left = max(0.0, self._ends - time.monotonic())
        self._says(f"{text} ({left / 60:.1f} min of the budget left)" if left else text)

    def _pair(self, names: tuple[str, ...], under: tuple[str, ...]) -> Pair:
        plain = Variant("as it is" if not under else ", ".join(under), _changes(under, self._cache))
        changed = Variant(", ".join((*under, *names)), _changes((*under, *names), self._cache))
        begun = time.monotonic()
        pair = take_turns(self._bench, plain, changed, self._plan)
        self._pair_s = (self._pair_s + time.monotonic() - begun) / 2
        return pair

    def _judge(self, names: tuple[str, ...], pairs: Sequence[Pair]) -> Judged:
        factor = math.prod(SPEEDUPS[name].factor for name in names)
        return judge([[ratio * factor for ratio in pair.ratios] for pair in pairs], self._margin)

    def _apart(self, names: tuple[str, ...]) -> tuple[float | None, str]:
        """Return the deviation of the losses from the unchanged script, and a complaint if it is too large, else ""."""
        tolerance = max(SPEEDUPS[name].tolerance for name in names)
        if math.isinf(tolerance):
            return None, ""
        compiled = any(SPEEDUPS[name].compiles for name in names)
        reference = self._losses(compiled)
        outcome = self._check(_changes(names, self._cache, checked=True), compiled)
        apart = deviation(reference, outcome.losses)
        if apart <= tolerance:
            return apart, ""
        if math.isnan(apart):
            return None, f"its losses could not be compared: the run {outcome.how}"
        own = deviation(reference, self._check((), compiled).losses)
        if own > 0:
            if apart <= 3 * own + tolerance:
                return apart, ""
            return apart, f"losses differ by {apart:.2%}; those of two runs as it is by {own:.2%}"
        return (
            apart,
            f"losses differ by {apart:.2%}; {f'{tolerance:.1%} is expected' if tolerance else 'none is expected'}",
        )

    def _losses(self, compiled: bool) -> tuple[float | None, ...]:
        if compiled not in self._references:
            self._references[compiled] = self._check((), compiled).losses
        return self._references[compiled]

    def _check(self, changes: tuple[Named, ...], compiled: bool) -> RunOutcome:
        """Record the losses of the first steps, without dropout, which draws other numbers in another precision."""
        calm = () if compiled else (_CALM,)
        bench = replace(self._bench, steps=self._most_steps)
        rest = changes if changes and changes[0] == _SEEDED else (_SEEDED, *changes)
        return bench.run(Variant("losses", (*calm, *rest), (LOSSES,)))

    def _combine(self) -> None:
        """Add speed-ups to the best one as long as they gain; then measure all of them against the script without."""
        result = self.result
        gains = sorted(
            (row for row in result.rows if row.status == "gain" and not _on_request(row)),
            key=lambda row: -row.judged.ratio if row.judged else 0.0,
        )
        if not gains:
            return
        result.best = gains[0].names
        idle = [row.names[0] for row in result.rows if row.status == "does not apply"]
        waiting = [row.names[0] for row in gains[1:]]
        waiting += [name for name in idle if SPEEDUPS[name].follows]
        for name in waiting:
            if any(_exclude(name, other) for other in result.best) or not _follows(name, result.best, gains):
                continue
            if not self._fits():
                result.left_out.append(f"{name} on top of {', '.join(result.best)}")
                continue
            row = self._try((name,), f"{name} on top of {', '.join(result.best)}", under=result.best)
            if row.status != "does not apply":
                result.together.append(row)
            if row.status == "gain":
                result.best = (*result.best, name)
        if len(result.best) > 1:
            result.whole = self._try(result.best, f"together: {', '.join(result.best)}")


def _on_request(row: SpeedupRow) -> bool:
    return any(SPEEDUPS[name].on_request for name in row.names)


def _exclude(name: str, other: str) -> bool:
    """Return True if two speed-ups cannot be combined."""
    return other in SPEEDUPS[name].excludes or name in SPEEDUPS[other].excludes


def _follows(name: str, best: Sequence[str], gains: Sequence[SpeedupRow]) -> bool:
    """Return True if the best speed-ups include one that this one builds on, or if it gained alone."""
    return bool(set(SPEEDUPS[name].follows) & set(best)) or any(row.names == (name,) for row in gains)


def _without_times(names: tuple[str, ...], pair: Pair) -> SpeedupRow | None:
    """Return the row of speed-ups that failed or do not apply; None if there are times to judge."""
    plain, changed = pair.outcomes
    failed = changed.how in ("crashed", "killed") or (changed.how == "exited" and not pair.ratios)
    if failed and len(pair.ratios) < _FEWEST_TURNS:
        said = (
            "exceeded its limit of time or memory"
            if changed.how == "killed"
            else changed.last_line[:200] or "it printed nothing"
        )
        return SpeedupRow(names, "failed", note=said)
    if not all(changed.changes.get(name, {}).get("applied") for name in names):
        return SpeedupRow(names, "does not apply")
    if len(pair.ratios) < _FEWEST_TURNS:
        ended = plain if plain.how in ("crashed", "killed") else changed
        return SpeedupRow(names, "failed", note=f"it {ended.how} after {len(pair.ratios)} turns")
    return None


def _memory(pair: Pair) -> float | None:
    """Return the ratio of peak memory: second variant over first; None if unknown."""
    plain, changed = (outcome.peak_bytes for outcome in pair.outcomes)
    return changed / plain if plain and changed else None


def _changes(names: Iterable[str], cache: str | None = None, *, checked: bool = False) -> tuple[Named, ...]:
    """Return the changes of speed-ups, in the order of their installation."""
    wanted = set(names)

    def arguments(speedup: type[Speedup]) -> dict[str, Any]:
        compiled = {"cache": cache} if speedup.compiles and cache else {}
        return (dict(speedup.checked) if checked else {}) | compiled

    return (_SEEDED, *((name, arguments(speedup)) for name, speedup in SPEEDUPS.items() if name in wanted))


@contextmanager
def _cache() -> Iterator[str | None]:
    """Yield a temporary folder in the user's cache, where variants may write; None without a writable cache."""
    caches = user_caches()
    if not caches.is_dir() or not os.access(caches, os.W_OK):
        yield None
        return
    (caches / "truestep").mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="compiled-", dir=caches / "truestep", ignore_cleanup_errors=True) as folder:
        yield folder
