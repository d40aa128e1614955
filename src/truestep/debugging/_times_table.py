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
    from truestep.debugging.timings import ModuleTime

OPERATIONS = 12
"""Operations that are shown."""


def of_profile(profile: Profile, width: int = WIDTH) -> RenderableType:
    """Return where the time went, in this many columns."""
    if not profile.steps:
        text = f"{profile.skipped} are skipped first, and a step that a loop is left in does not count"
        return Text(f"profile: no step was measured; {text}")
    rate = f"{1000 / profile.step_ms:,.0f} per second" if profile.step_ms < 1000 else "with the profiler on"
    measured = f"{counted(profile.steps, 'step')} of {ms(profile.step_ms)} ms ({rate})"
    title = f"{measured}, after {profile.skipped} that were skipped"
    lines: list[RenderableType] = [Text.assemble(("profile: ", "bold"), title), *hidden(profile.hidden)]
    lines += ["", _phases(profile, width)]
    if profile.modules:
        lines += ["", _modules(profile.modules, width)]
    if profile.operations:
        lines += ["", _operations(profile, width)]
    if profile.trace is not None:
        lines += ["", Text(f"trace: {profile.trace} (open it in ui.perfetto.dev)", style="dim", overflow="fold")]
    return Group(*lines)


def ms(value: float | None) -> str:
    """Return milliseconds with three figures.

    >>> [ms(value) for value in (0.01234, 1.234, 123.4, None)]
    ['0.012', '1.23', '123', '-']
    """
    if not value:
        return "-" if value is None else "0"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.{2 if value >= 1 else 3}f}"


def _phases(profile: Profile, width: int) -> Table:
    device = profile.phases[0].device_ms is not None
    rows: list[Sequence[str | Text]] = [
        [p.name, ms(p.ms), share(p.share), *([ms(p.device_ms)] if device else []), _bar(p.share)]
        for p in profile.phases
    ]
    columns = [("phase", 0), ("ms/step", 8), ("share", 6), *([("device", 8)] if device else []), ("", 0)]
    return table(columns, rows, width)


def _modules(modules: tuple[ModuleTime, ...], width: int) -> Table:
    device = modules[0].device_ms is not None
    columns = [("module", 0), ("class", 0), ("calls", 6), ("forward", 8), ("backward", 8), ("share", 6)]
    rows: list[Sequence[str | Text]] = []
    around: list[str] = []
    for module in modules:
        del around[module.depth :]
        outer = around[-1] if around else ""
        name = "  " * len(around) + module.name.removeprefix(f"{outer}.")
        around.append("" if module.name == "(model)" else module.name)
        times = [ms(module.forward_ms), ms(module.backward_ms), share(module.share)]
        rows.append([name, module.kind, f"{module.calls:g}", *times, *([ms(module.device_ms)] if device else [])])
    return table([*columns, *([("device", 8)] if device else [])], shortened(rows, ".modules"), width)


def _operations(profile: Profile, width: int) -> Table:
    device = profile.operations[0].device_ms is not None
    columns = [("operation", 0), ("calls", 6), ("ms/step", 8), ("share", 6), *([("device", 8)] if device else [])]
    rows: list[Sequence[str | Text]] = [
        [o.name, f"{o.calls:g}", ms(o.ms), share(o.share), *([ms(o.device_ms)] if device else [])]
        for o in profile.operations[:OPERATIONS]
    ]
    return table(columns, rows, width)


def _bar(part: float, cells: int = 30) -> Text:
    return Text("█" * round(part * cells), style="cyan")
