"""Random states put back exactly, and warnings kept quiet, while a copy of the program's code runs."""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from truestep.seams.patch import patch


def _quiet(message: object) -> None:
    """Show no warning: the program's own call has shown it."""


@contextmanager
def kept(torch: Any) -> Iterator[None]:
    """Leave the random states of python, numpy, torch and its devices as they were, whatever happens inside."""
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
    """Seed the generators themselves: ``torch.manual_seed`` would leave a seed behind for devices not yet in use."""
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
