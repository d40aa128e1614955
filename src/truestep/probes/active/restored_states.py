"""Random states that are restored, and warnings that are suppressed, while a copy of the program's code runs."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from truestep.seams.patch import patch


def _quiet(message: object) -> None:
    """Ignore a warning, since the program's own call has shown it."""


@contextmanager
def kept(torch: Any) -> Iterator[None]:
    """Context manager: restore the random states of python, numpy, torch and its devices on exit; suppress warnings."""
    numpy = sys.modules.get("numpy.random")
    generators = _generators(torch)
    python_state = random.getstate()
    numpy_state = None if numpy is None else numpy.get_state(legacy=False)
    states = [generator.get_state() for generator in generators]
    with ExitStack() as stack:
        if hasattr(warnings, "_showwarnmsg"):
            patch(stack, warnings, "_showwarnmsg", _quiet)
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
