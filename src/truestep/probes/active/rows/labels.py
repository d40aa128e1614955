"""Labels of the tables that a model is trained and evaluated on: whole columns, in which an absent class is absent."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from truestep.events import LabelsRead, Site
from truestep.probes.active.rows.names import stored_at, stored_in_loop
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, as_tensor, shape_of

if TYPE_CHECKING:
    from truestep.probes.active.rows.lookup import Found

_LEAST = 32
"""Least number of labels in a column."""
_MOST_CLASSES = 128
_MOST_ROWS = 1 << 20


class Labels:
    """Finds the column that the targets of a batch were taken from.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def read(
        self,
        held: list[Held],
        found: list[Found],
        target: Any,
        frames: list[FrameType],
        *,
        part: Sequence[int] | None = None,
        training: bool,
        site: Site | None,
    ) -> LabelsRead | None:
        """Return the classes in the column of the targets; None if no column has them.

        Args:
            held: arrays that variables hold.
            found: tables with the rows of the batch.
            target: targets of the batch.
            frames: the user's frames, the innermost first.
            part: rows of the data set that the loader reads; None for all.
            training: True for a loss that is trained, False for a comparison in an evaluation.
            site: line of the loss, or of the comparison.
        """
        torch, rows = self._scene.torch, shape_of(self._scene.torch, target)
        given = as_tensor(self._scene, target) if rows and not getattr(target, "requires_grad", False) else None
        if given is None or given.numel() != rows[0]:
            return None
        given = given.reshape(-1).double()
        for one in sorted(found, key=lambda one: one.table.rows):
            if one.window or len(one.places) != len(given):
                continue
            if one.table.rows == len(given) and stored_in_loop(frames, one.name):
                continue  # a batch
            for other in held:
                shape = shape_of(torch, other.value)
                if shape not in ((one.table.rows,), (one.table.rows, 1)) or shape[0] > _MOST_ROWS:
                    continue
                column = as_tensor(self._scene, other.value)
                column = None if column is None else column.reshape(-1).double()
                if column is None or not bool((column[one.places] == given).all()):
                    continue
                classes = self._classes(column, part)
                if classes:
                    made = next(filter(None, (stored_at(frames, name) for name in _names(frames, other))), None)
                    return LabelsRead(training=training, table=other.name, classes=classes, site=site, made=made)
        return None

    def _classes(self, column: Any, part: Sequence[int] | None) -> tuple[tuple[int, int], ...]:
        """Return the classes of a column with their counts; () for other numbers."""
        torch = self._scene.torch
        if part is not None:
            index = torch.as_tensor(list(part))
            if len(index) and int(index.max()) < len(column):
                column = column[index]
        if len(column) < _LEAST or not bool((column == column.round()).all()):
            return ()
        classes, counts = torch.unique(column, return_counts=True)
        if len(classes) > min(_MOST_CLASSES, len(column) // 2):
            return ()
        return tuple((int(number), int(count)) for number, count in zip(classes, counts, strict=True))


def _names(frames: list[FrameType], held: Held) -> list[str]:
    """Return the variables that hold an array, those of the outermost frame first: its name at the split."""
    spaces = [variables(frame) for frame in reversed(frames)] + [frame.f_globals for frame in frames[:1]]
    return [name for space in spaces for name, value in space.items() if value is held.value] + [held.name]
