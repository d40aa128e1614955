"""Tables with all rows of a batch, among the arrays that variables of the program hold."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

from truestep.probes.active.rows.tables import CopiedRows, Table, differ, keys_of
from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import Held, shape_of, version_of
from truestep.probes.variables.origins import is_of_loop
from truestep.seams.refs import Ref

_LEAST = 8
"""Least number of rows of a batch."""
_INNER = 3
"""Frames with variables that can hold the batch, if the arguments of the call are made from it."""
_MOST_KNOWN = 512
_MOST_NEAR = 8


@dataclass(slots=True)
class Found:
    """A batch with all its rows in a table."""

    name: str
    table: Table
    places: Any
    keys: Any
    form: tuple[Any, ...] = ()
    """Shape of a row, whether its values are floating-point numbers, and length of a window or 0."""

    @property
    def window(self) -> int:
        return int(self.form[2])


class Lookup:
    """Finds the rows of batches in tables.

    Args:
        scene: the scene.
        copies: gets the arrays with rows that are not all different.
    """

    def __init__(self, scene: Scene, copies: CopiedRows) -> None:
        self._scene = scene
        self._copies = copies
        self._known: dict[tuple[int, int], tuple[Ref, Any, Table | None]] = {}
        """Tables of tensors, by id and window, with the version of their values."""

    def batch(
        self, frames: list[FrameType], held: list[Held], given: tuple[Any, ...], *, whole: bool = False
    ) -> tuple[list[Found], Any]:
        """Return the tables with the rows of a call: of its first argument, else of a variable near the call."""
        torch = self._scene.torch
        if not given or not shape_of(torch, given[0]):
            return [], None
        rows = shape_of(torch, given[0])[0]
        inner = {id(frame) for frame in frames[:_INNER]} | {id(frame.f_globals) for frame in frames[:1]}
        near = [
            one.value
            for one in held
            if one.owner in inner and shape_of(torch, one.value)[:1] == (rows,) and (whole or _is_new(one, frames))
        ]
        for place, value in enumerate((*given, *near[:_MOST_NEAR])):
            found = self.locate(value, held, whole=whole)
            if place >= len(given):  # another order of the same rows need not be that of the input
                found = [one for one in found if whole or one.table.rows > rows]
            if found:
                return found, value
        return [], None

    def locate(self, value: Any, held: list[Held], *, whole: bool = False) -> list[Found]:
        """Return the tables with every row of an array, each once; itself too if ``whole``."""
        torch = self._scene.torch
        shape = shape_of(torch, value)
        if not shape or shape[0] < _LEAST or getattr(value, "requires_grad", False):
            return []
        keys = keys_of(self._scene, value)
        if keys is None or len(torch.unique(keys)) < _LEAST:
            return []
        form = shape[1:], _is_floating(value)
        found = []
        for one in held:
            for window in (0, shape[1]) if len(shape) == 2 and not form[1] else (0,):
                if one.value is value and not whole:
                    continue
                table = self.table(one, (*form, window))
                if table is None or table.rows < len(keys):
                    continue
                places, once = table.places(torch, keys)
                if bool(once.float().mean() >= 0.9) and bool(table.has(torch, keys).all()):
                    found.append(Found(one.name, table, places, keys, (*form, window)))
        return found

    def table(self, held: Held, form: tuple[Any, ...]) -> Table | None:
        """Return an array as a table of rows of a form, or of windows."""
        scene, value, window = self._scene, held.value, form[2]
        shape = shape_of(scene.torch, value)
        if len(shape) != (1 if window else 1 + len(form[0])) or _is_floating(value) != form[1]:
            return None
        if not window and (shape[1:] != form[0] or (len(shape) == 1 and not form[1])):
            return None  # whole numbers alone are labels, or places of rows
        version = version_of(value)
        known = self._known.get((id(value), window))
        if known is not None and known[0]() is value and version is not None and known[1] == version:
            return known[2]
        keys, table = keys_of(scene, value, window=window), None
        if keys is not None and len(keys) >= _LEAST:
            if differ(scene.torch, keys):
                table = Table(scene.torch, held, keys)
            elif not window:
                self._copies.met(value, keys)
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known[id(value), window] = Ref(value), version, table
        return table


def _is_new(held: Held, frames: list[FrameType]) -> bool:
    """Return True for a variable that the loop around the call stores: others hold the batch of an earlier training."""
    for frame in frames:
        names = id(frame.f_globals) if frame.f_code.co_name == "<module>" else id(frame)
        if held.owner == names:
            return is_of_loop(frame, held.name)
    return True


def _is_floating(value: Any) -> bool:
    kind = str(value.dtype)
    return "float" in kind
