"""Tiers of the supervised programs: some for ``make test``, the others for ``make programs``."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest


def in_tiers(programs: Iterable[Path], kept: Collection[Path], *, slow: Collection[str] = ()) -> list[Any]:
    """Return the parameters of a test: all programs, those that are not kept for ``make test`` with a mark."""
    parameters = []
    for one in programs:
        marks = [pytest.mark.slow] if one.stem in slow else [] if one in kept else [pytest.mark.program]
        parameters.append(pytest.param(one, id=one.stem, marks=marks))
    return parameters
