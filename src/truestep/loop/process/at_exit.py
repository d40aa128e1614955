"""Generators that a program still holds when it ends.

The interpreter clears modules before the objects of the main program: a generator that ends after that finds neither
`time` nor `threading`, and its `finally` fails with an error on the terminal. So they are closed before.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Generator, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Args = ParamSpec("Args")
Given = TypeVar("Given")

_alive: WeakKeyDictionary[Generator[Any, None, None], threading.Thread] = WeakKeyDictionary()
"""Generators, and the thread that made each of them."""


def closed_at_exit(function: Callable[Args, Iterator[Given]]) -> Callable[Args, Iterator[Given]]:
    """Let the generators that a function returns be closed at exit, after the runs, where they are alive then."""

    @wraps(function)
    def made(*args: Args.args, **kwargs: Args.kwargs) -> Iterator[Given]:
        generator = function(*args, **kwargs)
        assert isinstance(generator, Generator)
        _alive[generator] = threading.current_thread()
        return generator

    return made


def _close() -> None:
    """Close what is alive. Handlers run last in, first out: each run is over by now, since this was registered first.

    A daemon thread may still be in the body of its loop, and would take a closed loop for one that has come to its end.
    """
    here = threading.current_thread()
    for generator, thread in list(_alive.items()):
        if thread is here or not thread.is_alive():
            generator.close()


atexit.register(_close)
