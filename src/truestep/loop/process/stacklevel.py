"""Whom a warning speaks to: the line of the user's script that led to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).resolve().parents[2]) + os.sep


def outside() -> int:
    """Return the `stacklevel` by which `warnings.warn`, called beside this, names the nearest caller outside truestep.

    >>> outside()
    1
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
