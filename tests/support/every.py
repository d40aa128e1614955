"""One test of many cases, with all that offend in its message.

A test per case costs more than most laws of the house do: collected, sent to a worker, reported.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def every(
    names: str, cases: Iterable[Any] | Callable[[], Iterable[Any]], ids: Callable[[Any], str] | None = None
) -> Callable[..., Any]:
    """Return a decorator as `pytest.mark.parametrize`; the test runs all cases and names each that fails.

    Args:
        names: of the arguments that a case gives, with commas between.
        cases: a value for each name; may be made by `pytest.param` with an id. There must be one. A function that
            returns them is called by the test: the collection of other tests does not wait for it.
        ids: makes the name of a case from its value.
    """
    arguments = [name.strip() for name in names.split(",")]

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(check)
        def run(**fixtures: Any) -> None:
            offenders = []
            number = 0
            for number, case in enumerate(cases() if callable(cases) else cases, 1):
                values = getattr(case, "values", None) if hasattr(case, "marks") else None
                if values is None:
                    values = (case,) if len(arguments) == 1 else tuple(case)
                try:
                    check(**dict(zip(arguments, values, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    shown = getattr(case, "id", None) or ", ".join(map(ids or str, values))
                    offenders.append(f"{shown}: {error or type(error).__name__}")
            assert number, "at least one case"
            assert not offenders, f"{len(offenders)} of {number}\n" + "\n".join(offenders)

        signature = inspect.signature(check)
        kept = [one for name, one in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate
