"""Is a script reproducible? Run it twice or more, and find the first difference and its cause.

The runs are as the user starts them: no seed is set from outside. If they differ, the script runs again up to the first
difference: with all sources of randomness controlled, and then with all but one, which shows the sources that matter.
"""

from __future__ import annotations

import enum
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from truestep.errors import NoExperiment
from truestep.experiments.changes.harness.controlled import SOURCES as CONTROLLED
from truestep.experiments.figures.printed import last_figures
from truestep.experiments.instruments.state.trace import Difference, Trace, first_difference, is_rounding, read_trace
from truestep.experiments.repeat.operation import FirstOperation, first_operation, read
from truestep.experiments.repeat.sources import SOURCES, Source
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import Named, RunOutcome, Variant

_HASH = "PYTHONHASHSEED"


class RepeatVerdict(enum.StrEnum):
    """Result of repeated runs."""

    EQUAL = "reproducible"
    ROUNDING = "equal within rounding"
    DIFFERS = "not reproducible"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Result of the experiment.

    Attributes:
        runs: number of complete runs that were compared.
        steps: number of steps of the shortest run.
        how: end of the runs, such as "finished" or "stopped".
        first: number of the first step that differs, counted from 1; None if none does.
        pieces: state that differs at this step, such as "weights", "batches", "loss".
        rounding: True if rounding explains the difference.
        printed: printed numbers that differ, with the values of two runs.
        causes: sources without control of which the runs differ.
        operation: the first operation that differs; None if it was not found.
        controlled: True if runs with all sources controlled are equal, False if not, None if this was not tried.
        losses: losses of the first run, and of the one that differs.
        interrupted: True if Ctrl-C or the budget ended the search for the cause.
    """

    runs: int
    steps: int
    how: str
    first: int | None = None
    pieces: tuple[str, ...] = ()
    rounding: bool = False
    printed: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    causes: tuple[Source, ...] = ()
    operation: FirstOperation | None = None
    controlled: bool | None = None
    losses: tuple[tuple[float | None, ...], ...] = ()
    interrupted: bool = False

    @property
    def verdict(self) -> RepeatVerdict:
        if self.first is None and not self.printed:
            return RepeatVerdict.EQUAL
        return RepeatVerdict.ROUNDING if self.rounding else RepeatVerdict.DIFFERS


def repeat(bench: Bench, runs: int = 2, budget_s: float = float("inf")) -> Repeat:
    """Run a script several times, and compare the runs step by step.

    Args:
        bench: the script and the number of steps.
        runs: number of runs, at least 2.
        budget_s: seconds after which the search for the cause begins no further run.

    Raises:
        NoExperiment: a run crashed, exceeded its limit, or took no step.
    """
    begun = time.monotonic()
    traces: list[tuple[Trace, RunOutcome]] = []
    found = None
    try:
        for number in range(runs):
            traces.append(_run(bench, Variant(f"run {number + 1}", (), (("fingerprints", {}),), None, _own_hashes())))
            found = first_difference(traces[0][0].steps, traces[-1][0].steps)
            if found is not None:
                break
    except KeyboardInterrupt:
        if len(traces) < 2:
            raise
        return replace(_compared(traces, found), interrupted=True)
    result = _compared(traces, found)
    if result.first is None:
        return result
    return _explained(bench, result, begun + budget_s)


def _own_hashes() -> dict[str, str]:
    """Return the environment in which hashes of texts are as the user has them: random, unless they are fixed."""
    return {} if _HASH in os.environ else {_HASH: "random"}


def _run(bench: Bench, variant: Variant) -> tuple[Trace, RunOutcome]:
    with bench.place() as place:
        outcome = place.run(variant, from_start=True)
        trace = read_trace(place.results / "prints.jsonl")
    if outcome.how in ("crashed", "killed"):
        what = "exceeded its limit" if outcome.how == "killed" else "crashed"
        raise NoExperiment(
            f"a run ({variant.name}) {what}",
            remedy="raise --limit, or lower --steps" if outcome.how == "killed" else "fix the error above",
            said=outcome.said,
        )
    if not trace.steps:
        raise without_steps(outcome, "expected an optimizer that steps, in the process of the script")
    return trace, outcome


def _compared(traces: Sequence[tuple[Trace, RunOutcome]], found: tuple[int, Difference] | None) -> Repeat:
    """Return the result of the runs, without a cause."""
    (one, outcome), (other, last) = traces[0], traces[-1]
    steps = min(len(trace.steps) for trace, _ in traces)
    if found is None:
        said = [last_figures(each.said) for _, each in traces]
        printed = {
            name: (value, more[name])
            for more in said[1:]
            for name, value in said[0].items()
            if name in more and more[name] != value and value == value
        }
        if len(one.steps) != len(other.steps):
            return Repeat(len(traces), steps, outcome.how, steps + 1, ("number of steps",), losses=_losses(one, other))
        return Repeat(len(traces), steps, outcome.how, printed=printed)
    place, difference = found
    pieces = [name for name in difference.pieces if not name.startswith("random")]
    pieces += ["weights after the step"] if not pieces else []
    before, after = one.steps[place], other.steps[place]
    rounding = not {"weights", "batches", "rates"} & set(pieces) and is_rounding(before, after)
    return Repeat(len(traces), steps, last.how, place + 1, tuple(pieces), rounding, losses=_losses(one, other))


def _losses(*traces: Trace) -> tuple[tuple[float | None, ...], ...]:
    return tuple(tuple(step.loss for step in trace.steps) for trace in traces)


def _explained(bench: Bench, result: Repeat, ends: float) -> Repeat:
    """Return the result with the causes: sources that, left alone, make the runs differ."""
    first = result.first or 1
    short = replace(bench, steps=first)
    causes: list[Source] = []
    try:
        result = replace(result, operation=_operation(short, first))
        reference = _steps(short, "all sources controlled", CONTROLLED, "0")
        again = _steps(short, "all sources controlled, again", CONTROLLED, "0")
        result = replace(result, controlled=first_difference(reference.steps, again.steps) is None)
        if not result.controlled:
            return result
        for source in SOURCES.values():
            if causes and source.name in ("threads", "kernels"):
                continue  # they round: the least of several causes
            if time.monotonic() > ends:
                return replace(result, causes=tuple(causes), interrupted=True)
            if _matters(short, source, reference):
                causes.append(source)
    except KeyboardInterrupt:
        return replace(result, causes=tuple(causes), interrupted=True)
    return replace(result, causes=tuple(causes))


def _matters(bench: Bench, source: Source, reference: Trace) -> bool:
    """Return True if runs differ in which everything but this source is controlled."""
    name = f"all but {source.title}"
    if source.name == "hash":
        if _HASH in os.environ:
            return False
        others = [_steps(bench, name, CONTROLLED, seed) for seed in ("1", "2")]
    else:
        left = tuple(one for one in CONTROLLED if one != source.name)
        others = [_steps(bench, name, left, "0")]
        if source.name in ("threads", "kernels"):  # other kernels round in another way, and may repeat all the same
            reference, others = others[0], [_steps(bench, f"{name}, again", left, "0")]
    return any(first_difference(reference.steps, other.steps) is not None for other in others)


def _steps(bench: Bench, name: str, sources: Sequence[str], hashes: str) -> Trace:
    changes: tuple[Named, ...] = (("controlled", {"sources": list(sources)}),)
    return _run(bench, Variant(name, changes, (("fingerprints", {}),), None, {_HASH: hashes} | _fixed()))[0]


def _fixed() -> dict[str, str]:
    return {_HASH: os.environ[_HASH]} if _HASH in os.environ else {}


def _operation(bench: Bench, first: int) -> FirstOperation | None:
    """Return the first operation that differs in the first step that differs, in two more runs as they are."""
    recordings = []
    for number in (1, 2):
        instruments: tuple[Named, ...] = (("operations", {"after": first - 1}),)
        with bench.place() as place:
            place.run(Variant(f"operations of step {first}, run {number}", (), instruments, None, _own_hashes()))
            recordings.append(read(place.results / "operations.jsonl"))
    return first_operation(*recordings) if all(recordings) else None
