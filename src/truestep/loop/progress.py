"""What a run says on the terminal while it trains."""

from __future__ import annotations

import contextlib
import sys


def say(text: str) -> None:
    """Write a line to stderr; a terminal that is gone ends no training."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
