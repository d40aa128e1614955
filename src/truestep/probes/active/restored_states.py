"""Random states that are restored, and warnings that are suppressed, while a copy of the program's code runs."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from truestep.seams.patch import patch

_IGNORED = ("ignore", None, Warning, None, 0)


def _without_warnings(stack: ExitStack, torch: Any) -> None:
    """Ignore warnings without a trace: those that are shown once must still be shown to the program, at its own call.

    A filter that is set without a call of `warnings` leaves the registries of shown warnings as they are, and torch
    marks no warning as shown while all are to be shown.
    """
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    stack.callback(torch.set_warn_always, always)
    patch(stack, warnings, "filters", [_IGNORED, *warnings.filters])


@contextmanager
def kept(torch: Any) -> Iterator[None]:
    """Context manager: restore the random states of python, numpy, torch and its devices on exit; suppress warnings."""
    numpy = sys.modules.get("numpy.random")
    generators = _generators(torch)
    python_state = random.getstate()
    numpy_state = None if numpy is None else numpy.get_state(legacy=False)
    states = [generator.get_state() for generator in generators]
    with ExitStack() as stack:
        _without_warnings(stack, torch)
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy is not None:
                numpy.set_state(numpy_state)
            for generator, state in zip(generators, states, strict=True):
                generator.set_state(state)


def seed(torch: Any, number: int) -> None:
    """Seed the generators; not by ``torch.manual_seed``, which stores a seed for devices that are not yet in use."""
    random.seed(number)
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed(number)
    for generator in _generators(torch):
        generator.manual_seed(number)


def _generators(torch: Any) -> list[Any]:
    found = [torch.default_generator]
    if torch.cuda.is_initialized():
        found.extend(torch.cuda.default_generators)
    return found
