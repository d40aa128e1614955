"""Samples and labels that a data set holds, next to the arrays that they were taken from: the same rows, or others."""

from __future__ import annotations

import math
from dataclasses import replace
from types import FrameType
from typing import Any

from truestep.events import RowsPaired
from truestep.probes.active.rows.tables import Table, differ, keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, arrays, arrays_of, as_tensor, shape_of

_LEAST_ROWS = 32
_MOST_DATA = 8
_KNOWN = 0.9
"""Least share of the samples with exactly one row like them in the table."""
_LEAST_OTHERS = 0.1
"""Least share of the samples with another label."""


class HeldPairs:
    """Emits `RowsPaired`, once for each data set that a model is trained on.

    Args:
        scene: the scene.
        aside: returns the context manager in which values are read.
    """

    def __init__(self, scene: Scene, aside: Any) -> None:
        self._scene = scene
        self._aside: Any = aside
        self._met = 0

    def look(self, data: Any, frame: FrameType) -> None:
        """Compare the arrays of the data set of the latest batch with those in variables.

        Args:
            data: the data set; None without one.
            frame: torch's frame of the call of a model.
        """
        scene = self._scene
        if data is None or scene.loader is None or self._met >= _MOST_DATA:
            return
        if not scene.numbers.of("held pairs", data)[1]:
            return
        self._met += 1
        with self._aside(), scene.sampling.timed(None):
            held = arrays_of(scene, data)
            event = self._compared(held, arrays(scene, scene.sites.users(frame)))
        if event is not None:
            scene.emit(event)

    def _compared(self, held: list[Held], others: list[Held]) -> RowsPaired | None:
        """Return the event of a data set with samples and one number for each, if both are in tables of variables."""
        torch = self._scene.torch
        shapes = {id(one.value): shape_of(torch, one.value) for one in (*held, *others)}
        wide = [one for one in held if math.prod(shapes[id(one.value)][1:]) > 1]
        if not wide:
            return None
        samples = max(wide, key=lambda one: math.prod(shapes[id(one.value)]))
        rows, *form = shapes[id(samples.value)]
        labels = [one for one in held if one.value is not samples.value and _is_column(shapes[id(one.value)], rows)]
        keys = keys_of(self._scene, samples.value) if rows >= _LEAST_ROWS and len(labels) == 1 else None
        if keys is None or not differ(torch, keys):
            return None
        unlike = None
        for other in others:
            size, *same = shapes[id(other.value)] or (0,)
            alike = same == form and str(other.value.dtype) == str(samples.value.dtype)
            known = keys_of(self._scene, other.value) if alike and size > rows else None
            if known is None or not differ(torch, known):
                continue
            places, found = Table(torch, other, known).places(torch, keys)
            beside = [one for one in others if one.owner == other.owner or one.value is labels[0].value]
            for one in beside if float(found.double().mean()) >= _KNOWN else ():
                if _is_column(shapes[id(one.value)], size, size):
                    equal = self._are_equal(one, labels[0], places[found], found)
                    event = RowsPaired(table=other.name, other=one.name, rows=size, equal=bool(equal))
                    if equal:
                        return replace(event, stored=self._scene.loader)
                    unlike = event if equal is False else unlike
        return unlike and replace(unlike, stored=self._scene.loader)

    def _are_equal(self, column: Held, labels: Held, places: Any, found: Any) -> bool | None:
        """Return True for the labels at some places of a column, False for those of its first rows, None for others.

        Args:
            column: an array with a number for each row of a table.
            labels: the array of the data set.
            places: rows of its samples in the table.
            found: True for each sample with such a row.
        """
        expected, given = as_tensor(self._scene, column.value), as_tensor(self._scene, labels.value)
        if expected is None or given is None:
            return None
        expected, given = expected.reshape(-1), given.reshape(-1)[: len(found)]
        own = expected[places] == given[found]
        if bool(own.all()):
            return True
        first = bool((expected[: len(given)] == given).all())
        return False if first and 1 - float(own.double().mean()) >= _LEAST_OTHERS else None


def _is_column(shape: tuple[int, ...], least: int, most: int | None = None) -> bool:
    """Return True for the shape of one number for each row."""
    return bool(shape) and math.prod(shape[1:]) == 1 and least <= shape[0] <= (shape[0] if most is None else most)
