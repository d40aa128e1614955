"""Where do the time and memory of a script's steps go?

Times come from steps without a profiler. The profiler and the sampler of the thread only divide the time of each phase:
their own overhead does not change its sum.
"""

from __future__ import annotations

import gzip
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from truestep.debugging.timings import ModuleTime, PhaseTime
from truestep.errors import NoExperiment, UnwritableFolder
from truestep.experiments.running.absent import without_steps
from truestep.experiments.running.bench import Bench
from truestep.experiments.running.outcome import RunOutcome, Variant

TRACE = "trace.json.gz"


@dataclass(frozen=True, slots=True)
class LineTime:
    """A line of the user's code in one phase of the mean step.

    Attributes:
        path: path of the file.
        line: line number, from 1.
        function: function that contains the line.
        phase: phase of the step. A line has a separate entry for each phase.
        ms: milliseconds in the line and its calls, without other lines of the user's code.
        share: share of the step, in [0, 1].
        looks: number of samples of the thread at this line; more samples make the share more certain.
        outer: path and number of the calling line of the user's code; None for the outermost.
    """

    path: str
    line: int
    function: str
    phase: str
    ms: float
    share: float
    looks: int
    outer: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of torch in the mean step, without the operations that it calls.

    Attributes:
        name: name in torch, such as "aten::addmm".
        phase: phase of the step.
        calls: calls per step.
        ms: milliseconds on the CPU's clock.
        share: share of the step, in [0, 1].
        shapes: shapes of the inputs that took most of the time.
        module: module that took most of the time; "" for none.
        line: path and number of the calling line of the user's code; None if unknown. In the backward pass, the line
            that called the operation of the forward pass.
        device_ms: milliseconds of the kernels that it launched; None if no device was used.
    """

    name: str
    phase: str
    calls: float
    ms: float
    share: float
    shapes: str
    module: str
    line: tuple[str, int] | None
    device_ms: float | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Memory held at the peak, and the place of its allocation.

    Attributes:
        size: bytes.
        phase: phase of the step.
        module: allocating module; "" for none.
        line: path and number of the allocating line of the user's code; None if unknown.
    """

    size: int
    phase: str
    module: str
    line: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """Memory of the profiled steps.

    Attributes:
        device: "cpu", or an accelerator.
        parameters: bytes of parameters and buffers.
        gradients: bytes of gradients between two steps.
        optimizer: bytes of the state of all optimizers.
        resident: resident bytes of the whole process; 0 if unknown.
        peak: peak in bytes; on the CPU, allocations of torch since the start of the profiler, plus parameters and
            state.
        phase: phase of the peak.
        operation: operation with the last allocation before the peak.
        line: line of the user's code with this allocation.
        at: time of the peak within its step, in [0, 1].
        curve: bytes during the step of the peak, sampled at equal parts of its time.
        phases: beginning and end of each phase in that step, in [0, 1].
        between: bytes at the end of each profiled step.
        owners: the memory held at the peak, the largest part first.
        allocated: bytes allocated per step.
    """

    device: str
    parameters: int
    gradients: int
    optimizer: int
    resident: int
    peak: int
    phase: str
    operation: str
    line: tuple[str, int] | None
    at: float
    curve: tuple[int, ...]
    phases: tuple[tuple[float, float, str], ...]
    between: tuple[int, ...]
    owners: tuple[Holder, ...]
    allocated: float

    @property
    def growth(self) -> float:
        """Bytes by which every step increases the memory; 0 if any step does not."""
        own = self.between[1:]
        grown = [after - before for before, after in pairwise(own)]
        return median(grown) if len(grown) >= 4 and min(grown) > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Profiled:
    """Result of the experiment.

    Attributes:
        steps: number of timed steps, without a profiler.
        warmup: number of skipped steps before them.
        batches: batches per step.
        step_ms: mean step in milliseconds.
        phases: phases of the mean step; their times sum to it.
        each_ms: milliseconds of every timed step.
        slower: slowdown of the median step under the profiler, and under the sampler; None without such steps.
        lines: lines of the user's code, the slowest first.
        looks: number of samples of the thread.
        modules: modules, parents before children; their times are scaled to steps without a profiler.
        operations: operations, the slowest first.
        memory: memory of the profiled steps; None if nothing was profiled.
        compiled: graphs, breaks and recompilations of torch.compile; empty if nothing was compiled.
        late_compilations: compilations during the timed steps.
        hidden: parts of models that hooks cannot see, with the reason.
        workers: largest number of workers of a loader.
        loaders: True if any loader was iterated.
        optimizers: classes of the optimizers.
        threads: number of threads of torch.
        lost: reason for a missing profile; "" if there is one.
        waited: fraction of the thread time in the timed steps that was spent waiting for a processor.
        outcome: outcome of the run.
    """

    steps: int
    warmup: int
    batches: float
    step_ms: float
    phases: tuple[PhaseTime, ...]
    each_ms: tuple[float, ...]
    slower: tuple[float | None, float | None]
    lines: tuple[LineTime, ...]
    looks: int
    modules: tuple[ModuleTime, ...]
    operations: tuple[Operation, ...]
    memory: MemoryProfile | None
    compiled: Mapping[str, Any]
    late_compilations: int
    hidden: Mapping[str, str]
    workers: int
    loaders: bool
    optimizers: tuple[str, ...]
    threads: int
    lost: str
    waited: float
    outcome: RunOutcome

    def phase(self, name: str) -> PhaseTime:
        """Return the phase with this name."""
        return next(phase for phase in self.phases if phase.name == name)


def profile(bench: Bench, *, steps: int = 20, warmup: int = 5, trace: Path | None = None) -> Profiled:
    """Run a script for some steps, and measure where their time and memory go.

    Args:
        bench: the script.
        steps: steps of each window, at least 1.
        warmup: skipped steps before, at least 0.
        trace: file for the trace of torch's profiler; None writes none.

    Raises:
        NoExperiment: the script took no step that could be timed.
        UnwritableFolder: the trace cannot be written.
    """
    looked = ("profile", {"steps": steps, "warmup": warmup, "trace": trace is not None})
    with bench.place() as place:
        outcome = place.run(Variant("as it is", (), (looked,)), from_start=True)
        measured = outcome.results.get("profile", {})
        _check(outcome, measured)
        if trace is not None and (place.results / TRACE).exists():
            _write(place.results / TRACE, trace)
    return read(measured, outcome)


def _check(outcome: RunOutcome, measured: Mapping[str, Any]) -> None:
    if measured.get("timed", {}).get("steps"):
        return
    before = measured.get("warmup", 0)
    if not before:
        raise without_steps(outcome, "expected an optimizer that steps")
    happened = f"the script {outcome.how} after {before} steps, before one could be timed"
    remedy = "lower --warmup, or pass arguments for a longer training"
    if outcome.how == "killed":
        happened, remedy = "the script exceeded its limit before a step could be timed", "raise --limit"
    raise NoExperiment(happened, expected=f"expected more than {before} steps", remedy=remedy, said=outcome.said)


def _write(source: Path, target: Path) -> None:
    content = source.read_bytes()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if target.suffix == ".gz" else gzip.decompress(content))
    except OSError as error:
        raise UnwritableFolder(
            f"the trace cannot be written to {target}",
            expected=error.strerror or str(error),
            remedy="pass another file with --trace",
        ) from None


def read(measured: Mapping[str, Any], outcome: RunOutcome) -> Profiled:
    """Return the result from the message of the instrument."""
    timed = measured["timed"]["seconds"]
    step = sum(timed.values()) or math.inf
    looked, profiled = (_factors(timed, measured[window]) for window in ("looked", "profiled"))
    lines, looks = _lines(measured["lines"], looked, step)
    slower = tuple(
        median(measured[window]["each"]) / median(measured["timed"]["each"]) if measured[window]["steps"] else None
        for window in ("profiled", "looked")
    )
    phases = tuple(PhaseTime(name, 1000 * timed[name], timed[name] / step) for name in measured["phases"])
    return Profiled(
        steps=measured["timed"]["steps"],
        warmup=measured["warmup"],
        batches=measured["timed"]["batches"],
        step_ms=1000 * step,
        phases=phases,
        each_ms=tuple(1000 * seconds for seconds in measured["timed"]["each"]),
        slower=(slower[0], slower[1]),
        lines=lines,
        looks=looks,
        modules=tuple(_module(entry, profiled, step) for entry in measured.get("modules", ())),
        operations=_operations(measured.get("operations", ()), profiled, step, measured["accelerator"]),
        memory=_memory(measured["memory"], measured["resident"]) if measured.get("memory") else None,
        compiled=measured["compiled"],
        late_compilations=measured["timed_compilations"],
        hidden=measured["hidden"],
        workers=max(measured["loaders"].values(), default=0),
        loaders=bool(measured["loaders"]),
        optimizers=tuple(measured["optimizers"]),
        threads=measured["threads"],
        lost=measured["lost"],
        waited=measured["waited"],
        outcome=outcome,
    )


def _factors(timed: Mapping[str, float], window: Mapping[str, Any]) -> dict[str, float]:
    """Return the factors that scale the times of each phase in a window to those of steps without a profiler."""
    return {
        phase: seconds / window["seconds"][phase] if window["seconds"].get(phase) else 0.0
        for phase, seconds in timed.items()
    }


def _lines(
    measured: Sequence[Mapping[str, Any]], factors: Mapping[str, float], step: float
) -> tuple[tuple[LineTime, ...], int]:
    """Return the innermost lines of the user's code, and the number of samples of the thread."""
    spent: defaultdict[tuple[str, int, str], float] = defaultdict(float)
    looks: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    functions: dict[tuple[str, int, str], str] = {}
    outer: defaultdict[tuple[str, int, str], defaultdict[tuple[str, int], float]]
    outer = defaultdict(lambda: defaultdict(float))
    for entry in measured:
        if not entry["lines"]:
            continue
        path, number, function = entry["lines"][0]
        key = (str(path), int(number), str(entry["phase"]))
        seconds = entry["seconds"] * factors[entry["phase"]]
        spent[key] += seconds
        looks[key] += entry["looks"]
        functions[key] = str(function)
        if len(entry["lines"]) > 1:
            above = entry["lines"][1]
            outer[key][str(above[0]), int(above[1])] += seconds
    found = []
    for key, seconds in spent.items():
        far = max(outer[key], key=outer[key].__getitem__) if outer[key] else None
        found.append(LineTime(*key[:2], functions[key], key[2], 1000 * seconds, seconds / step, looks[key], far))
    return tuple(sorted(found, key=lambda line: -line.ms)), sum(entry["looks"] for entry in measured)


def _module(entry: Mapping[str, Any], factors: Mapping[str, float], step: float) -> ModuleTime:
    forward, backward = factors["forward"], factors["backward"]
    there, back = entry["forward_ms"] * forward, entry["backward_ms"] * backward
    return ModuleTime(
        entry["name"],
        entry["kind"],
        entry["depth"],
        entry["calls"],
        there,
        back,
        (there + back) / 1000 / step,
        entry["device_ms"],
        entry["own_forward_ms"] * forward,
        entry["own_backward_ms"] * backward,
    )


def _operations(
    measured: Sequence[Mapping[str, Any]], factors: Mapping[str, float], step: float, accelerator: str
) -> tuple[Operation, ...]:
    found = [
        Operation(
            entry["name"],
            entry["phase"],
            entry["calls"],
            entry["ms"] * factors[entry["phase"]],
            entry["ms"] * factors[entry["phase"]] / 1000 / step,
            entry["shapes"],
            entry["module"],
            _place(entry["line"]),
            entry["device_ms"] if accelerator else None,
        )
        for entry in measured
    ]
    return tuple(sorted(found, key=lambda operation: (-(operation.device_ms or 0), -operation.ms)))


def _memory(measured: Mapping[str, Any], resident: int) -> MemoryProfile:
    at = measured["at_phase"]
    return MemoryProfile(
        device=measured["device"],
        parameters=measured["parameters"],
        gradients=measured["gradients"],
        optimizer=measured["optimizer"],
        resident=resident,
        peak=measured["peak"],
        phase=at.get("phase", "other"),
        operation=at.get("operation", ""),
        line=_place(at.get("line")),
        at=measured["at"],
        curve=tuple(measured["curve"]),
        phases=tuple((begin, end, phase) for begin, end, phase in measured["phases"]),
        between=tuple(measured["between"]),
        owners=tuple(Holder(o["bytes"], o["phase"], o["module"], _place(o["line"])) for o in measured["owners"]),
        allocated=measured["allocated"],
    )


def _place(line: Sequence[Any] | None) -> tuple[str, int] | None:
    return (str(line[0]), int(line[1])) if line else None
