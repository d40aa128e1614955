"""Tiers of parameters and of supervised programs: some for ``make test``, the others for ``make programs``."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest


def few(number: int, values: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: one of so many for ``make test``, the others with a mark."""
    return [_parameter(value, kept=place % number == 0) for place, value in enumerate(values)]


def only(kept: Sequence[Any], values: Iterable[Any]) -> list[Any]:
    """Return the parameters of a test: all values, those that are not kept for ``make test`` with a mark."""
    return [_parameter(value, kept=value in kept) for value in values]


def _parameter(value: Any, *, kept: bool) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=[pytest.mark.program] * (not kept))


def in_tiers(programs: Iterable[Path], kept: Collection[str], *, slow: Collection[str] = ()) -> list[Any]:
    """Return the parameters of a test: all programs, those not named as kept for ``make test`` with a mark."""
    parameters, left = [], set(kept)
    for one in programs:
        left.discard(one.stem)
        marks = [pytest.mark.slow] if one.stem in slow else [] if one.stem in kept else [pytest.mark.program]
        parameters.append(pytest.param(one, id=one.stem, marks=marks))
    assert not left, f"there is no program of the name: {sorted(left)}"
    return parameters
