"""The printed form of an error: the fact, the expectation, the remedy."""

from __future__ import annotations

from textwrap import wrap
from typing import TextIO

from truestep.errors import NoExperiment, TrueStepError


def show(error: TrueStepError, stream: TextIO) -> None:
    """Write an error as ``ClassName: happened`` with its expected and remedy lines below.

    >>> import sys
    >>> from truestep.errors import UnknownRule
    >>> show(UnknownRule('no rule is called "x"', remedy="list them with `truestep rules`"), sys.stdout)
    UnknownRule: no rule is called "x"
      list them with `truestep rules`
    """
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, NoExperiment):
        text = of_experiment(text)
    stream.write(f"{text}\n")
    stream.flush()


def of_experiment(text: str) -> str:
    """Return the text wrapped to 80 columns, the width of the reports of experiments.

    Args:
        text: lines; those after the first are indented.
    """
    lines = []
    for line in text.splitlines():
        indent = "  " if line.startswith("  ") else ""
        parts = wrap(line, 80, initial_indent=indent, subsequent_indent="  ", break_on_hyphens=False)
        lines += parts if len(line) > 80 else [line]
    return "\n".join(lines)
