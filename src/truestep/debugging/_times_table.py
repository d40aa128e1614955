"""The table of a profile: phases, modules, operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from truestep.debugging._tables import WIDTH, counted, hidden, share, shortened, table

if TYPE_CHECKING:
    from truestep.debugging.profiling import Profile
    from truestep.debugging.timings import ModuleTime, PhaseTime

OPERATIONS = 12
"""Most operations to show."""


def of_profile(profile: Profile, width: int = WIDTH) -> RenderableType:
    """Return the text of a profile, in this many columns."""
    if not profile.steps:
        text = f"the first {profile.skipped} are skipped, and a step that ends with the loop's `break` does not count"
        return Text(f"profile: no step was measured; {text}")
    rate = f"{1000 / profile.step_ms:,.0f} per second" if profile.step_ms < 1000 else "with the profiler on"
    measured = f"{counted(profile.steps, 'step')} of {ms(profile.step_ms)} ms ({rate})"
    title = f"{measured}, after {profile.skipped} skipped"
    lines: list[RenderableType] = [Text.assemble(("profile: ", "bold"), title), *hidden(profile.hidden)]
    lines += ["", phase_table(profile.phases, width)]
    if profile.modules:
        lines += ["", module_table(profile.modules, width)]
    if profile.operations:
        lines += ["", _operations(profile, width)]
    if profile.trace is not None:
        lines += ["", Text(f"trace: {profile.trace} (open it in ui.perfetto.dev)", style="dim", overflow="fold")]
    return Group(*lines)


def ms(value: float | None) -> str:
    """Return milliseconds with three digits.

    >>> [ms(value) for value in (0.01234, 1.234, 123.4, None)]
    ['0.012', '1.23', '123', '-']
    """
    if not value:
        return "-" if value is None else "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.{2 if value >= 1 else 3}f}"


def phase_table(phases: Sequence[PhaseTime], width: int) -> Table:
    """Return the phases of a step, each with a bar."""
    device = phases[0].device_ms is not None
    rows: list[Sequence[str | Text]] = [
        [p.name, ms(p.ms), share(p.share), *([ms(p.device_ms)] if device else []), _bar(p.share)] for p in phases
    ]
    columns = [("phase", 0), ("ms/step", 8), ("share", 6), *([("device", 8)] if device else []), ("", 0)]
    return table(columns, rows, width)


def module_table(modules: Sequence[ModuleTime], width: int, *, own: float | None = None) -> Table:
    """Return modules as a tree.

    Args:
        modules: outer modules before inner ones.
        width: width of the table in characters.
        own: milliseconds of a step, to show the share of each module without its submodules; None shows no such share.
    """
    device = modules[0].device_ms is not None
    columns = [("module", 0), ("class", 0), ("calls", 6), ("forward", 8), ("backward", 8), ("share", 6)]
    columns += [("alone", 6)] if own is not None else []
    rows: list[Sequence[str | Text]] = []
    around: list[tuple[int, str]] = []
    for module in modules:
        while around and around[-1][0] >= module.depth:
            around.pop()
        outer = around[-1][1] if around else ""
        name = "  " * len(around) + module.name.removeprefix(f"{outer}.")
        around.append((module.depth, "" if module.name == "(model)" else module.name))
        times = [ms(module.forward_ms), ms(module.backward_ms), share(module.share)]
        times += [share((module.own_forward_ms + module.own_backward_ms) / own)] if own is not None else []
        rows.append([name, module.kind, f"{module.calls:.3g}", *times, *([ms(module.device_ms)] if device else [])])
    return table([*columns, *([("device", 8)] if device else [])], shortened(rows, ".modules"), width)


def _operations(profile: Profile, width: int) -> Table:
    device = profile.operations[0].device_ms is not None
    columns = [("operation", 0), ("calls", 6), ("ms/step", 8), ("share", 6), *([("device", 8)] if device else [])]
    rows: list[Sequence[str | Text]] = [
        [o.name, f"{o.calls:g}", ms(o.ms), share(o.share), *([ms(o.device_ms)] if device else [])]
        for o in profile.operations[:OPERATIONS]
    ]
    return table(columns, rows, width)


def _bar(part: float) -> Text:
    return Text("█" * round(30 * part), style="cyan")
