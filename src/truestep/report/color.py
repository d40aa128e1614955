"""Colours of printed texts: by ``--color``, ``NO_COLOR``, ``FORCE_COLOR``, or the stream, in this order."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from rich.console import Console

ColorWhen = Literal["auto", "always", "never"]
_chosen: ColorWhen = "auto"


def choose(when: ColorWhen) -> None:
    """Set the colours of all later texts of this process.

    The environment stays as it is: a supervised script would inherit it.

    Args:
        when: "auto" follows the environment and the stream.
    """
    global _chosen
    _chosen = when


def is_colored(stream: TextIO) -> bool:
    """Return True if texts for this stream have colours.

    >>> import io
    >>> is_colored(io.StringIO())
    False
    """
    if is_refused() or _chosen == "always":
        return _chosen == "always"
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM", "") not in _DUMB)


def is_refused() -> bool:
    """Return True if not even a terminal gets colours, by ``--color never`` or ``NO_COLOR``."""
    return _chosen == "never" or (_chosen == "auto" and bool(os.environ.get("NO_COLOR")))


_DUMB = ("dumb", "unknown")
"""Terminals without escape sequences."""


def console(stream: TextIO | None = None, **settings: Any) -> Console:
    """Return a console that prints with colours or without any escape sequence.

    Args:
        stream: default is standard output.
        settings: further parameters of `rich.console.Console`.
    """
    from rich.console import Console

    stream = sys.stdout if stream is None else stream
    colored = is_colored(stream)
    detected = Console(file=stream)
    return Console(
        file=stream,
        color_system=(detected.color_system or "standard") if colored else None,  # type: ignore[arg-type]
        no_color=not colored,
        force_terminal=colored or detected.is_terminal,
        force_interactive=stream.isatty(),
        highlight=False,
        **settings,
    )
