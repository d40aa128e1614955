"""Averages that are the weights themselves: they began as the same tensors, or as views, and are written in place."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

from truestep.events import AverageOfItself
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.probes.variables.memory import Leaves, held_at, is_plain, place, values_mark
from truestep.probes.variables.mixed_names import Mixed, mixed_names

_LEAST_CHANGES = 2
"""Looks at which the weights had other values than before."""


class OwnAverages:
    """Emits `AverageOfItself`.

    Args:
        scene: the scene.
        leaves: the trained tensors.
    """

    def __init__(self, scene: Scene, leaves: Leaves) -> None:
        self._scene = scene
        self._leaves = leaves
        self._marks: dict[Mixed, tuple[int, int, tuple[object, ...]]] = {}
        """Average to the frame, the number of changes and some values, at the latest look."""
        self._told: set[Mixed] = set()

    def look(self, frames: Iterable[FrameType]) -> None:
        """Look at the averages in frames, at a backward pass."""
        for frame in frames:
            found = [one for one in mixed_names(frame.f_code) if one not in self._told]
            if found:
                local = bool(frame.f_code.co_flags & 1)
                names = {**frame.f_globals, **variables(frame)} if local else frame.f_globals
                for one in found:
                    self._examine(one, names, id(frame))

    def _examine(self, one: Mixed, names: Mapping[str, Any], holder: int) -> None:
        average, places = held_at(one.average, names), self._leaves.places()
        if not all(names.get(flag) is True for flag in one.flags):
            return
        for other in one.others:
            weights = held_at(other, names)
            pairs = list(_pairs(average, weights))
            if not pairs or not all(self._is_one(mine, theirs, places) for mine, theirs in pairs):
                continue
            mark = tuple(part for mine, theirs in pairs for part in values_mark(mine, theirs))
            before, changes, old = self._marks.get(one, (holder, 0, mark))
            changes = changes + (old != mark) if before == holder else 0
            self._marks[one] = holder, changes, mark
            if changes >= _LEAST_CHANGES:
                self._told.add(one)
                self._scene.tell(
                    AverageOfItself,
                    name=ast.unparse(one.average),
                    other=ast.unparse(other),
                    tensors=len(pairs),
                    updated=one.site,
                    site=one.binding,
                )
            return
        self._marks.pop(one, None)

    def _is_one(self, mine: Any, theirs: Any, places: Mapping[Any, Any]) -> bool:
        torch = self._scene.torch
        return (
            is_plain(torch, mine)
            and is_plain(torch, theirs)
            and place(mine) == place(theirs)
            and place(theirs) in places
        )


def _pairs(average: Any, weights: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the tensors of two variables that belong together."""
    kind = type(average)
    if kind is not type(weights) and kind not in (list, tuple):
        yield average, weights
    elif kind is dict:
        yield from ((average[key], weights[key]) for key in average if type(key) is str and key in weights)
    elif kind in (list, tuple):
        if type(weights) in (list, tuple) and len(average) == len(weights):
            yield from zip(average, weights, strict=True)
    else:
        yield average, weights
