"""Text of 80 columns: wrapped paragraphs, and tables."""

from __future__ import annotations

from textwrap import wrap

WIDTH = 80


def wrapped(text: str, width: int = WIDTH) -> str:
    """Return a paragraph wrapped between words; long words and words with hyphens stay whole."""
    return "\n".join(wrap(text, width, break_long_words=False, break_on_hyphens=False))


def rendered(table: object) -> str:
    """Return the text of a table of rich, without colours and without spaces at the ends of lines."""
    from rich.console import Console

    console = Console(width=WIDTH, highlight=False, force_terminal=False)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
