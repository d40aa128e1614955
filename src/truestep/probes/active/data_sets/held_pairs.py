"""Samples and labels that a data set holds, next to the arrays that they were taken from: the same rows, or others."""

from __future__ import annotations

import math
from types import FrameType
from typing import Any

from truestep.events import RowsPaired
from truestep.probes.active.rows.tables import Held, Table, arrays, arrays_of, as_tensor, differ, keys_of, shape_of
from truestep.probes.context.scene import Scene

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
        torch = self._scene.torch
        shapes = {id(one.value): shape_of(torch, one.value) for one in (*held, *others)}
        wide = [one for one in held if math.prod(shapes[id(one.value)][1:]) > 1]
        if not wide:
            return None
        samples = max(wide, key=lambda one: math.prod(shapes[id(one.value)]))
        rows, *form = shapes[id(samples.value)]
        labels = [one for one in held if one.value is not samples.value and _is_column(shapes[id(one.value)], rows)]
        if rows < _LEAST_ROWS or len(labels) != 1:
            return None
        keys = keys_of(self._scene, samples.value)
        if keys is None or not differ(torch, keys):
            return None
        for other in others:
            size, *same = shapes[id(other.value)] or (0,)
            if (
                other.value is samples.value
                or same != form
                or size < rows
                or str(other.value.dtype) != str(samples.value.dtype)
            ):
                continue
            known = keys_of(self._scene, other.value)
            if known is None or not differ(torch, known):
                continue
            places, found = Table(torch, other, known).places(torch, keys)
            columns = [
                one for one in others if one.owner == other.owner and _is_column(shapes[id(one.value)], size, size)
            ]
            if columns and float(found.double().mean()) >= _KNOWN:
                return self._judged(other, columns, labels[0], (places, found), size)
        return None

    def _judged(
        self, table: Held, columns: list[Held], labels: Held, places: tuple[Any, Any], size: int
    ) -> RowsPaired | None:
        """Return the event of labels that are those of the samples, or of other rows of the same array."""
        given, unlike = as_tensor(self._scene, labels.value), ""
        rows, known = places
        for one in columns:
            column = as_tensor(self._scene, one.value)
            if column is None or given is None:
                continue
            column, mine = column.reshape(-1), given.reshape(-1)[: len(rows)]
            own = column[rows]
            if bool((own == mine)[known].all()):
                unlike = ""
                break
            elsewhere = bool((column[: len(mine)] == mine).all()) or bool((own.sort()[0] == mine.sort()[0]).all())
            if elsewhere and float((own != mine)[known].double().mean()) >= _LEAST_OTHERS:
                unlike = unlike or one.name
        else:
            if not unlike:
                return None
        loader = self._scene.loader
        other = unlike or columns[0].name
        return RowsPaired(table=table.name, other=other, rows=size, equal=not unlike, stored=loader)


def _is_column(shape: tuple[int, ...], least: int, most: int | None = None) -> bool:
    """Return True for the shape of one number for each row."""
    return bool(shape) and math.prod(shape[1:]) == 1 and least <= shape[0] <= (shape[0] if most is None else most)
