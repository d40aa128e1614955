"""Group batches into streams of training data: a script may create new loaders and data sets in every epoch."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

from truestep.experiments.running.inside.outside_reads import PACKAGE, installed
from truestep.seams.refs import Ref

StreamPlace = tuple[str, int]


class TrainingStream:
    """One stream of batches.

    Attributes:
        kept: copies of its first batches.
        given: number of repeated batches.
    """

    def __init__(self, place: StreamPlace) -> None:
        self.place = place
        self.kept: list[Any] = []
        self.given = 0
        self._iterator: Any = lambda: None
        self._dataset: Any = None

    @property
    def is_free(self) -> bool:
        """True if the iterator that drew from it is exhausted or freed."""
        return self._iterator() is None

    def draws(self, iterator: Any, dataset: Any) -> None:
        """Record that an iterator over a data set draws from it."""
        self._iterator = weakref.ref(iterator)
        try:
            self._dataset = Ref(dataset)
        except TypeError:  # a list has no weak references: hold it, so that its address is not reused
            self._dataset = lambda: dataset

    def is_of(self, dataset: Any) -> bool:
        """Return True if this data set is the latest one of the stream."""
        return self._dataset is not None and self._dataset() is dataset

    def is_over(self) -> None:
        """Record that the iterator is exhausted."""
        self._iterator = lambda: None


class Streams:
    """All streams of a script.

    Iterators over one data set are one stream. So are iterators that the same line of the script draws from in
    sequence, even with different loaders or data sets. Two simultaneous iterators at one line (`zip`) are two streams.
    """

    def __init__(self) -> None:
        self._all: list[TrainingStream] = []
        self._of: weakref.WeakKeyDictionary[Any, TrainingStream] = weakref.WeakKeyDictionary()
        self._libraries = tuple(os.path.join(place, "") for place in [str(PACKAGE), *installed()])

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[TrainingStream]:
        return iter(self._all)

    def of(self, iterator: Any, dataset: Any) -> TrainingStream:
        """Return the stream of an iterator. Call it from the wrapper that the script's line calls."""
        found = self._of.get(iterator)
        if found is None:
            place = self._place(sys._getframe(2))
            found = next((stream for stream in self._all if stream.is_of(dataset)), None)
            found = found or next((stream for stream in self._all if stream.place == place and stream.is_free), None)
            if found is None:
                found = TrainingStream(place)
                self._all.append(found)
            found.draws(iterator, dataset)
            self._of[iterator] = found
        return found

    def is_over(self, iterator: Any) -> None:
        """Record that an iterator is exhausted."""
        if iterator in self._of:
            self._of.pop(iterator).is_over()

    def _place(self, frame: FrameType | None) -> StreamPlace:
        """Return the innermost line of the script."""
        while frame is not None:
            path = frame.f_code.co_filename
            if not path.startswith(("<", *self._libraries)):
                return path, frame.f_lineno
            frame = frame.f_back
        return "", 0
