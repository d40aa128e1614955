"""Reports: render a run's summary in one of four formats. Needs no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from truestep import source
from truestep.errors import UnwritableFolder
from truestep.report.color import is_colored

if TYPE_CHECKING:
    from truestep.config import Format, Options
    from truestep.findings import Summary

__all__ = ["render", "write"]

NARROWEST, WIDEST = 80, 120


def render(summary: Summary, format: Format = "text", *, width: int = 100, colour: bool = False) -> str:
    """Return the report on a run as text that ends with a newline.

    Args:
        summary: the run.
        format: "text" for people, "json" and "sarif" for programs, "github" for annotations in GitHub Actions.
        width: columns of the terminal, for "text"; clamped to 80 to 120.
        colour: True to add ANSI colours to "text".

    >>> from truestep.findings import Summary
    >>> print(render(Summary("train.py", "finished", steps=313)), end="")
    no failure found, 0 rules clear, 0 not observed
    """
    match format:
        case "text":
            from truestep.report import terminal

            return terminal.render(summary, width=min(max(width, NARROWEST), WIDEST), colour=colour)
        case "json":
            from truestep.report import json

            return json.render(summary)
        case "sarif":
            from truestep.report import sarif

            return sarif.render(summary)
        case "github":
            from truestep.report import github

            return github.render(summary)


def write(
    summary: Summary,
    options: Options,
    stream: TextIO | None = None,
    *,
    rendered: Callable[..., str] = render,
) -> str:
    """Write the report to the file of the options, or to the stream.

    Args:
        summary: the run.
        options: format, output file, and `quiet`, which skips a report without findings and errors.
        stream: default is standard error.
        rendered: renders the report, with the parameters of `render`.

    Returns:
        A line for the user with the path of the file; "" if no file was written.

    Raises:
        UnwritableFolder: the output file cannot be written.
    """
    content = summary.shown() or summary.internal_errors or summary.missing_ranks or summary.post_mortem
    if options.quiet and not content:
        return ""
    if options.output is not None:
        text = rendered(summary, options.format)
        try:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UnwritableFolder(
                f"the report cannot be written to {options.output}",
                expected=str(error),
                remedy="name another file with --output",
            ) from error
        return f"wrote the report to {source.displayed(str(options.output))}"
    target = sys.stderr if stream is None else stream
    width, colour = _terminal(target) if options.format == "text" else (0, False)
    text = rendered(summary, options.format, width=width, colour=colour)
    encoding = getattr(target, "encoding", None) or "utf-8"
    target.write(text.encode(encoding, errors="replace").decode(encoding))
    target.flush()
    return ""


def _terminal(stream: TextIO) -> tuple[int, bool]:
    """Return the width of a stream, and True if it shows colours."""
    if not stream.isatty():
        return int(columns) if (columns := os.environ.get("COLUMNS", "")).isdigit() else 100, is_colored(stream)
    from rich.console import Console

    return Console(file=stream).width, is_colored(stream)
