"""The report of `truestep profile`: text, JSON, and a picture."""

from __future__ import annotations

import dataclasses
import linecache
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.text import Text

from truestep.debugging._tables import counted, share, table
from truestep.debugging._times_table import module_table, ms, phase_table
from truestep.experiments.profile.bottleneck import near, sentences, size, unit_of
from truestep.experiments.profile.profile import MemoryProfile, Profiled
from truestep.experiments.reports.curve import drawn
from truestep.experiments.reports.picture import svg
from truestep.experiments.reports.text import WIDTH

_LEAST = 0.02
"""Rows with a smaller share of a step are not shown."""
_SLOW = 2.0
"""Slowdown of a step by the profiler (as a factor) above which the text warns that shares are distorted."""
_LINES, _OPERATIONS, _OWNERS, _REASONS = 10, 8, 5, 5


def text(found: Profiled, folder: str, trace: Path | None = None) -> RenderableType:
    """Return the report on a profile: phases, lines, modules, operations, memory, compilation, bottleneck.

    Args:
        found: the profile.
        folder: paths below this folder are shown relative to it.
        trace: file of the trace; None if none was written.
    """
    parts: list[RenderableType] = [*_head(found), "", phase_table(found.phases, WIDTH)]
    for part in (_lines(found, folder), _modules(found), _operations(found, folder), _held(found, folder)):
        parts += ["", *part] if part else []
    parts += ["", *compiled] if (compiled := list(_compiled(found, folder))) else []
    if trace is not None:
        parts += ["", Text(f"trace: {trace} (open it in ui.perfetto.dev)", style="dim", overflow="fold")]
    return Group(*parts, "", *(Text(line) for sentence in sentences(found, folder) for line in _wrapped(sentence)))


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def _head(found: Profiled) -> list[Text]:
    batches = "" if round(found.batches) <= 1 else f" of {found.batches:.3g} batches"
    threads = counted(found.threads, "thread")
    lines = [
        Text.assemble(
            ("profile: ", "bold"),
            f"a step{batches} takes {ms(found.step_ms)} ms on {threads} "
            f"({counted(found.steps, 'step')} timed, {found.warmup} before left out)",
        )
    ]
    profiled = found.slower[0]
    if profiled:
        cost = f"made a step {profiled:.2g} times as slow" if profiled >= 1.05 else "cost nothing measurable"
        lines.append(Text(f"profiling {cost}; all times are of steps without it", style="dim"))
        if profiled > _SLOW:
            text = "its cost is per operation, so modules of many small operations seem slower than they are"
            lines += [Text(line, style="dim") for line in wrap(text, WIDTH)]
    else:
        why = found.lost or f"the script {found.outcome.how} before the profiler had its steps"
        lines += [Text(line) for line in wrap(f"no modules, operations and memory: {why}", WIDTH)]
    if found.workers:
        workers = counted(found.workers, "worker")
        text = f"the loader's {workers} run in separate processes: data is the time that training waited for them"
        lines += [Text(line, style="dim") for line in wrap(text, WIDTH)]
    return lines


def _lines(found: Profiled, folder: str) -> list[RenderableType]:
    shown = [line for line in found.lines if line.share >= _LEAST][:_LINES]
    if not shown:
        return []
    rows: list[Sequence[str | Text]] = []
    for line in shown:
        text = linecache.getline(line.path, line.line).strip()
        place = f"{near(line.path, folder)}:{line.line}"
        rows.append([_tail(place, 26), Text(text), line.phase, ms(line.ms), share(line.share)])
    columns = [("line", 0), ("", 0), ("phase", 10), ("ms/step", 8), ("share", 6)]
    seen = Text(f"from {found.looks:,} samples of the thread, one per millisecond", style="dim")
    return [table(columns, rows, WIDTH), seen]


def _modules(found: Profiled) -> list[RenderableType]:
    shown = [module for module in found.modules if module.share >= _LEAST]
    lines: list[RenderableType] = [module_table(shown, WIDTH, own=found.step_ms)] if shown else []
    for name, why in found.hidden.items():
        lines.append(Text(f"{name} is one row, without its submodules: {why}", style="dim"))
    return lines


def _operations(found: Profiled, folder: str) -> list[RenderableType]:
    shown = [operation for operation in found.operations if operation.share >= _LEAST][:_OPERATIONS]
    if not shown:
        return []
    rows: list[Sequence[str | Text]] = []
    for operation in shown:
        name = operation.name.removeprefix("aten::")
        place = f"{near(operation.line[0], folder)}:{operation.line[1]}" if operation.line else operation.module or "-"
        times = [ms(operation.ms), share(operation.share)]
        rows.append(
            [name, operation.shapes or "-", operation.phase, _tail(place, 20), f"{operation.calls:.3g}", *times]
        )
    columns = [("operation", 0), ("shapes", 0), ("phase", 10), ("line", 0), ("calls", 5), ("ms/step", 7), ("share", 5)]
    return [table(columns, rows, WIDTH)]


def _held(found: Profiled, folder: str) -> list[RenderableType]:
    memory = found.memory
    if memory is None:
        return []
    where = f", {near(memory.line[0], folder)}:{memory.line[1]}" if memory.line else ""
    kinds = " and ".join(dict.fromkeys(found.optimizers)) or "optimizers"
    head = f"{size(memory.peak)} at the peak, in {memory.phase} ({memory.operation.removeprefix('aten::')}{where})"
    lines: list[RenderableType] = [Text.assemble(("memory: ", "bold"), head)]
    parts = f"parameters {size(memory.parameters)}, gradients {size(memory.gradients)}, "
    parts += f"state of {kinds} {size(memory.optimizer)}, new in a step {size(memory.allocated)}"
    parts += f"; the process holds {size(memory.resident)}" if memory.resident and memory.device == "cpu" else ""
    lines += [Text(line, style="dim") for line in wrap(parts, WIDTH)]
    if len(memory.curve) > 1 and max(memory.curve) > min(memory.curve):
        lines += [Text(line, no_wrap=True) for line in _curve(memory)]
    rows: list[Sequence[str | Text]] = []
    for owner in memory.owners[:_OWNERS]:
        place = f"{near(owner.line[0], folder)}:{owner.line[1]}" if owner.line else "-"
        if owner.size >= _LEAST * memory.peak:
            rows.append(
                [owner.module or "-", owner.phase, _tail(place, 26), size(owner.size), share(owner.size / memory.peak)]
            )
    if rows:
        columns = [("held at the peak, made in", 0), ("phase", 10), ("line", 0), ("size", 9), ("share", 6)]
        lines += ["", table(columns, rows, WIDTH)]
    return lines


def _curve(memory: MemoryProfile) -> Iterator[str]:
    """Yield the lines of a chart of memory over one step, with the phases below."""
    unit, of = unit_of(memory.peak)
    *chart, _ = drawn([held / of for held in memory.curve], width=WIDTH, height=6)
    yield from chart
    columns = WIDTH - 8
    below = [" "] * columns
    for begin, end, phase in memory.phases:
        first, last = round(begin * columns), round(min(end, 1.0) * columns)
        name = f"{phase[: last - first - 1]:·<{max(0, last - first - 1)}}"
        for place, letter in enumerate(name, first):
            if place < columns:
                below[place] = letter
    yield f"{unit:>6}  {''.join(below)}".rstrip()


def _compiled(found: Profiled, folder: str) -> Iterator[RenderableType]:
    compiled = found.compiled
    if not compiled:
        return
    breaks, again = compiled["breaks"], compiled["recompiles"]
    graphs = f"{counted(compiled['graphs'], 'compilation')} in {compiled['seconds']:.1f} s"
    again_count = sum(entry["count"] for entry in again)
    head = f"{graphs}, {counted(len(breaks), 'graph break')}, {counted(again_count, 'recompilation')}"
    yield Text.assemble(("torch.compile: ", "bold"), head)
    for entry in breaks[:_REASONS]:
        yield from _reason(entry, folder, f"breaks the graph: {entry['reason']}")
    for entry in again[:_REASONS]:
        times = "once" if entry["count"] == 1 else f"{entry['count']} times"
        yield from _reason(entry, folder, f"{entry['function']} was compiled again {times}: {entry['guard']}")
    more = max(0, len(breaks) - _REASONS) + max(0, len(again) - _REASONS)
    if more:
        yield Text(f"... and {more} more; --format json has all", style="dim")


def _reason(entry: dict[str, object], folder: str, text: str) -> Iterator[RenderableType]:
    path, number = str(entry["path"]), int(str(entry["line"]))
    for line in wrap(f"{near(path, folder)}:{number} {text}", WIDTH, subsequent_indent="    "):
        yield Text(line)
    source = linecache.getline(path, number).strip()
    if source:
        yield Text(f"    {source}", style="dim", no_wrap=True, overflow="ellipsis")


def _tail(text: str, most: int) -> str:
    """Return the last `most` characters: the end of a path says more than its beginning."""
    return text if len(text) <= most else f"…{text[-most + 1 :]}"


def document(found: Profiled) -> dict[str, object]:
    """Return the profile as values for JSON."""
    fields = dataclasses.asdict(found)
    outcome = fields.pop("outcome")
    return fields | {
        "sentences": sentences(found, os.getcwd()),
        "how": outcome["how"],
        "seconds": round(found.outcome.seconds, 3),
    }


def picture(found: Profiled) -> str:
    """Return a chart of memory over one step as SVG; memory must have been measured."""
    assert found.memory is not None
    unit, of = unit_of(found.memory.peak)
    held = [taken / of for taken in found.memory.curve]
    peak = f"{size(found.memory.peak)} at the peak, in {found.memory.phase}"
    return svg({"memory": [held]}, f"memory over one step, in {unit}: {peak}", ends=("begins", "ends"))
