"""Ranks other than 0 print nothing to standard output: a script prints each line once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from truestep.loop.process import terminal


@contextmanager
def quiet() -> Iterator[None]:
    """Context manager in which `print` and the messages of a run are discarded; standard error stays."""
    stdout, spoken = sys.stdout, terminal.spoken
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout, terminal.spoken = nowhere, False
        try:
            yield
        finally:
            if sys.stdout is nowhere:
                sys.stdout = stdout
            terminal.spoken = spoken
