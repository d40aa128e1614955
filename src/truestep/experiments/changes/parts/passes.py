"""Begin and end of passes over torch's loaders."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from truestep import seams


class Passes:
    """Numbers passes over loaders.

    A pass ends when its iterator is exhausted, freed or reset. Passes over the toolkit's own loaders, which read ahead,
    are not counted.

    Args:
        over: function called with the number of a pass at its end.
    """

    def __init__(self, over: Callable[[int], None]) -> None:
        self._over = over
        self._under_way: dict[int, weakref.ref[Any]] = {}
        """Iterators of open passes by number; the last one yielded the latest batch."""
        self._begun = 0

    @property
    def now(self) -> int | None:
        """Number of the open pass that yielded the latest batch; None outside of passes."""
        return next(reversed(self._under_way), None)

    def install(self, stack: ExitStack) -> None:
        """Count until the stack unwinds. torch must be imported."""
        from truestep.loop.loading import feed

        def drew(iterator: Any, batch: Any) -> None:
            if type(iterator._dataset).__module__ != feed.__name__:
                self._drew(iterator)

        seams.loader.watch(stack, drew=drew, ended=lambda iterator: self._end(self._number(iterator)))

    def _drew(self, iterator: Any) -> None:
        number = self._number(iterator)
        if number is not None and iterator._num_yielded <= 1:  # persistent workers
            self._end(number)
            number = None
        if number is None:
            number = self._begun = self._begun + 1
            ref = weakref.ref(iterator, lambda _: self._end(number))
        else:
            ref = self._under_way.pop(number)
        self._under_way[number] = ref

    def _number(self, iterator: Any) -> int | None:
        return next((number for number, ref in self._under_way.items() if ref() is iterator), None)

    def _end(self, number: int | None) -> None:
        if number is not None and self._under_way.pop(number, None) is not None:
            self._over(number)
