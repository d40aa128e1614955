"""How the command line says that it cannot go on: what happened, what was expected, what to do."""

from __future__ import annotations

from typing import TextIO

from truestep.errors import TrueStepError


def show(error: TrueStepError, stream: TextIO) -> None:
    """Write an error as ``ClassName: happened`` with its expected and remedy lines below.

    >>> import sys
    >>> from truestep.errors import UnknownRule
    >>> show(UnknownRule('no rule is called "x"', remedy="list them with `truestep rules`"), sys.stdout)
    UnknownRule: no rule is called "x"
      list them with `truestep rules`
    """
    stream.write(f"{type(error).__name__}: {error}\n")
    stream.flush()
