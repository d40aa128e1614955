"""Closing of generators that are still alive when the program ends.

The interpreter clears modules before the objects of the main program. A generator that is closed after that has no
`time` or `threading`, so its `finally` block fails with an error on the terminal. They are closed earlier, by `atexit`.
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
"""Generators, and the thread that created each of them."""


def closed_at_exit(function: Callable[Args, Iterator[Given]]) -> Callable[Args, Iterator[Given]]:
    """Decorator: close the generators that a function returns at exit, after the runs, if they are still alive."""

    @wraps(function)
    def made(*args: Args.args, **kwargs: Args.kwargs) -> Iterator[Given]:
        generator = function(*args, **kwargs)
        assert isinstance(generator, Generator)
        _alive[generator] = threading.current_thread()
        return generator

    return made


def _close() -> None:
    """Close the living generators of this thread and of ended threads.

    Exit handlers run last in, first out: each run is over by now, since this handler was registered first. Generators
    of a living daemon thread are left open: its loop would continue as if the data had ended.
    """
    here = threading.current_thread()
    for generator, thread in list(_alive.items()):
        if thread is here or not thread.is_alive():
            generator.close()


atexit.register(_close)
