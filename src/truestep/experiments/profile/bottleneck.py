"""Describe the bottlenecks of a script's steps in a few sentences. The thresholds are far above the usual variation."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from statistics import median

from truestep.experiments.profile.profile import LineTime, Profiled

MUCH = 0.3
"""Smallest share of a step for which a phase is named."""
_MODULE = 0.25
_OPERATION = 0.1
_LOOKS = 20
_WAITED = 0.1
"""Fraction of thread time spent waiting for a processor from which a machine is busy; a quiet one has almost none."""
_GROWS = 0.001
"""Growth of memory per step, relative to its peak, that is reported."""


def sentences(found: Profiled, folder: str = "") -> list[str]:
    """Return sentences about the bottlenecks, at least one.

    Args:
        found: the measurements.
        folder: the user's working folder: paths below it are shown relative to it.
    """
    sentences = [*_phases(found, folder), *_trained(found, folder), *_modules(found), *_memory(found), *_uneven(found)]
    if not sentences:
        most = max(found.phases, key=lambda phase: phase.ms)
        sentences = [f"nothing dominates: the largest phase, {most.share:.0%} of a step, is {most.name}"]
    return [*sentences, *_busy(found)]


def _busy(found: Profiled) -> Iterator[str]:
    if found.waited >= _WAITED:
        yield (
            f"this machine is busy: the script's threads waited for a processor for {found.waited:.0%} of their time; "
            "times are longer than on a quiet machine, and shares may differ"
        )


def _phases(found: Profiled, folder: str) -> Iterator[str]:
    for phase in sorted(found.phases, key=lambda phase: -phase.ms):
        if phase.share < MUCH:
            return
        share, at = f"{phase.share:.0%} of a step", place_of(leading(found, phase.name), folder)
        if phase.name == "data" and found.workers:
            yield (
                f"{share} waits for the loader's workers, {_ms(phase.ms)} ms: their processes are not profiled; more "
                "workers, or less work per sample, would help: try `truestep tune`"
            )
        elif phase.name == "data":
            yield f"{share} waits for data{at}, and does not train: try `truestep tune`"
        elif phase.name == "optimizer":
            kinds = " and ".join(dict.fromkeys(found.optimizers))
            yield f"{share} is the optimizer ({kinds}){at}: try `truestep tune`, which compares its fused form"
        elif phase.name == "evaluation":
            yield f"{share} went into evaluation{at}, in the steps that were measured"
        elif phase.name == "other":
            what = "" if found.loaders else "; the script has no loader, so this includes making batches"
            yield f"{share} is outside of torch's phases{at}: losses, reading values, logging, printing{what}"


def _modules(found: Profiled) -> Iterator[str]:
    """Yield a sentence about the module that takes most of a step, without its submodules."""
    most = max(found.modules, key=lambda module: module.own_forward_ms + module.own_backward_ms, default=None)
    if most is not None:
        share = (most.own_forward_ms + most.own_backward_ms) / found.step_ms
        if share >= _MODULE:
            inner = any(module.name.startswith(f"{most.name}.") for module in found.modules)
            what = f"{most.name} ({most.kind})" + (" without its submodules" if inner else "")
            yield f"{share:.0%} of a step is {what}, forward and backward together"


def _trained(found: Profiled, folder: str) -> Iterator[str]:
    """Yield a sentence about forward and backward, with the slowest operation, if they dominate."""
    trained = found.phase("forward").share + found.phase("backward").share
    if trained < 2 * MUCH:
        return
    slowest = next((o for o in found.operations if o.phase in ("forward", "backward") and o.share >= _OPERATION), None)
    most = ""
    if slowest is not None:
        at = f" of {near(slowest.line[0], folder)}:{slowest.line[1]}" if slowest.line else ""
        most = f"; its slowest operation, {slowest.name.removeprefix('aten::')}{at}, takes {slowest.share:.0%}"
    yield f"{trained:.0%} of a step is forward and backward: the model computes{most}"


def _memory(found: Profiled) -> Iterator[str]:
    memory = found.memory
    if memory is not None and memory.growth > max(1024, _GROWS * memory.peak):
        yield (
            f"memory grows by {size(memory.growth)} per step: a list of losses or outputs that keeps their graphs "
            "grows like this"
        )


def _uneven(found: Profiled) -> Iterator[str]:
    each = found.each_ms
    usual = median(each)
    long = [ms for ms in each if ms > 3 * usual]
    if len(each) >= 10 and long and sum(long) > 0.25 * sum(each):
        why = "the beginning of an epoch, an evaluation, a checkpoint"
        if found.late_compilations:
            why = f"{found.late_compilations} compilations came in these steps; raise --warmup, or see their reasons"
        steps = "1 step" if len(long) == 1 else f"{len(long)} steps"
        yield (
            f"{steps} of {len(each)} took {sum(long) / sum(each):.0%} of the time, each more than 3 times the usual "
            f"{_ms(usual)} ms: {why}"
        )


def leading(found: Profiled, phase: str) -> LineTime | None:
    """Return the line that takes most of a phase; None if it was sampled too rarely to be sure."""
    lines = [line for line in found.lines if line.phase == phase]
    if not lines or lines[0].looks < _LOOKS:
        return None
    part = lines[0].ms / (sum(line.ms for line in lines) or math.inf)
    return lines[0] if part - 2 * math.sqrt(part * (1 - part) / lines[0].looks) > 0.25 else None


def place_of(line: LineTime | None, folder: str) -> str:
    """Return the place of a line, as the end of a sentence; "" for None."""
    if line is None:
        return ""
    where = f"line {line.line} of {near(line.path, folder)}"
    if line.function not in ("", "<module>"):
        where += f", {line.function}"
    return f", most of it in {where}"


def near(path: str, folder: str) -> str:
    """Return a path relative to a folder, if it lies below it; else the path unchanged."""
    inside = folder and path.startswith(os.path.join(folder, ""))
    return os.path.relpath(path, folder) if inside else path


def size(amount: float) -> str:
    """Return an amount of bytes with its unit.

    >>> [size(amount) for amount in (12, 20_000, 1_234_567, 3.2e9)]
    ['12 B', '20 kB', '1.23 MB', '3.2 GB']
    """
    unit, of = unit_of(amount)
    return f"{amount / of:.3g} {unit}" if amount < 1000 * of else f"{amount / of:,.0f} {unit}"


def unit_of(amount: float) -> tuple[str, float]:
    """Return the unit for an amount of bytes, and the bytes in one of it."""
    return next(((unit, of) for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)) if amount >= of), ("B", 1.0))


def _ms(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
