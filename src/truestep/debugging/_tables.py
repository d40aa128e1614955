"""Tables that fit 80 columns."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from truestep.debugging._visible import Hidden

WIDTH = 80
MOST, LAST = 60, 12
"""Most rows to show, and the number of them taken from the end."""


def as_text(renderable: RenderableType) -> str:
    """Return the output of rich, 80 columns wide and without colour."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, force_terminal=False, highlight=False, _environ={})
    console.print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def table(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[str | Text]], width: int) -> Table:
    """Return a table of at most `width` characters; text that is too long ends with three dots.

    Args:
        columns: title and width of each; 0 for a column of text that takes the rest. Numbers are right-aligned.
        rows: the cells of each row, from the left.
        width: width of the terminal.
    """
    texts = [index for index, (_, wide) in enumerate(columns) if not wide]
    wide = [wide for _, wide in columns]
    for index in texts:
        wide[index] = max([len(columns[index][0]), *(len(row[index]) for row in rows if index < len(row))])
    room = width - len(columns) + 1 - sum(wide[index] for index in range(len(columns)) if index not in texts)
    while sum(wide[index] for index in texts) > max(room, 8 * len(texts)):
        wide[max(texts, key=lambda index: wide[index])] -= 1
    made = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for index, (title, _) in enumerate(columns):
        number = index not in texts
        made.add_column(
            title, justify="right" if number else "left", width=wide[index], no_wrap=True, overflow="ellipsis"
        )
    for row in rows:
        made.add_row(*row)
    return made


def shortened(rows: list[Sequence[str | Text]], where: str) -> list[Sequence[str | Text]]:
    """Return the first and last rows, with a row between them on the number left out and where to find them."""
    if len(rows) <= MOST:
        return rows
    return [*rows[: MOST - LAST], [f"... {len(rows) - MOST} more in {where}"], *rows[-LAST:]]


def number(value: float | None) -> str:
    """Return a number in at most eight characters: "0.031", "-1.2e-05", "-" for None.

    >>> [number(value) for value in (0.03125, -1.24e-5, 0.0, 123456.0, None, float("nan"))]
    ['0.031', '-1.2e-05', '0', '1.2e+05', '-', 'NaN']
    """
    if value is None:
        return "-"
    if value != value:
        return "NaN"
    return f"{value:.2g}" if abs(value) < 100 else f"{value:.0f}" if abs(value) < 1e5 else f"{value:.1e}"


def share(value: float | None) -> str:
    """Return a share in whole percent: "0%" is exactly 0, "<1%" is above 0."""
    if value is None:
        return "-"
    if 0 < value < 0.01:
        return "<1%"
    return ">99%" if 0.99 < value < 1 else f"{100 * value:.0f}%"


def counted(count: int, what: str) -> str:
    """Return a count with its noun: "1 layer", "1,200 values"."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def names(found: Iterable[str], most: int = 6) -> str:
    """Return names in one line, with "the model" for an empty name."""
    listed = [name or "the model" for name in found]
    rest = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + rest


def fact(title: str, text: str, style: str = "bold") -> Text:
    """Return a line with a title."""
    return Text.assemble((f"{title}: ", style), text, overflow="fold")


def hidden(borders: Iterable[Hidden]) -> list[Text]:
    """Return a line for each reason for hidden modules."""
    found: dict[str, list[Hidden]] = {}
    for border in borders:
        found.setdefault(border.why, []).append(border)
    lines = []
    for why, group in found.items():
        count = sum(border.modules for border in group)
        where = names(border.name for border in group)
        lines.append(fact("hidden", f"{counted(count, 'module')} of {where}, by {why}"))
    return lines
