"""Compute the `stacklevel` that makes a warning point at the user's line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep


def outside() -> int:
    """Return the `stacklevel` for a call of `warnings.warn` in the caller: of the nearest frame outside truestep.

    >>> outside()
    1
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
