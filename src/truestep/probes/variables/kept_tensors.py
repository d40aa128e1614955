"""Tensors that a branch for a new best figure keeps without a copy: training changes them, at the same best figure."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import KeptTensorsChanged
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import plain_number
from truestep.probes.variables.kept_names import KeptName, kept_attributes, kept_names
from truestep.probes.variables.memory import Leaves, held_at, place, tensors_in, values_mark
from truestep.seams.refs import Ref

_MOST_OBJECTS = 256


@dataclass(slots=True)
class _Seen:
    """A variable at the latest look.

    Attributes:
        holder: identity of the frame or the object that has it.
        first: the best figure at the first look.
        best: the best figure.
        beside: whether the latest figure is a worse one.
        tensors: the tensors with the memory of trained ones, with some of their values.
    """

    holder: int
    first: float
    best: float = math.nan
    beside: bool = False
    tensors: list[tuple[Ref, tuple[object, ...]]] = field(default_factory=list)


class KeptTensors:
    """Emits `KeptTensorsChanged`.

    Args:
        scene: the scene.
        leaves: the trained tensors.
    """

    def __init__(self, scene: Scene, leaves: Leaves) -> None:
        self._scene = scene
        self._leaves = leaves
        self._seen: dict[KeptName, _Seen] = {}
        self._told: set[KeptName] = set()
        self._known: list[KeptName] = []
        """Attributes that branches for a best figure assign."""
        self._read: set[str] = set()
        """Files that were read for them."""
        self._files = 0
        """Number of the program's files at the latest look."""

    def look(self, frames: Iterable[FrameType]) -> bool:
        """Look at the variables of frames, at a backward pass; return True if the next pass must be seen too."""
        frames, again = list(frames), False
        for frame in frames:
            names = kept_names(frame.f_code)
            open_names = [one for one in names if one not in self._told and one.is_within(frame.f_lineno)]
            if open_names:
                held = _names_of(frame)
                for one in open_names:
                    again = self._examine(one, held, id(frame)) or again
        attributes = [one for one in self._attributes(frames) if one not in self._told]
        for owner in _objects(frames) if attributes else ():
            for one in attributes:
                if type(owner).__name__ == one.owner:
                    again = self._examine(one, {"self": owner}, id(owner)) or again
        return again

    def _attributes(self, frames: Iterable[FrameType]) -> list[KeptName]:
        """Return the attributes of the classes in the program's files; these are read once."""
        paths, own = {frame.f_code.co_filename for frame in frames}, self._scene.sites.own_files()
        if len(own) != self._files:
            self._files = len(own)
            paths.update(own)
        for path in paths - self._read:
            self._read.add(path)
            self._known += kept_attributes(path)
        return self._known

    def _examine(self, one: KeptName, names: Mapping[str, Any], holder: int) -> bool:
        torch = self._scene.torch
        best = plain_number(torch, held_at(one.best, names))
        if best is None:
            self._seen.pop(one, None)
            return False
        before = self._seen.get(one)
        if before is None or before.holder != holder:
            before = _Seen(holder, best)
        now = self._seen[one] = _Seen(holder, before.first, best)
        if not math.isfinite(best) or (one.bound and best == before.first):
            return False
        places, tensors = self._leaves.places(), []
        for tensor in tensors_in(torch, held_at(one.node, names)):
            leaf = places.get(place(tensor))
            if leaf is not None:
                tensors.append((tensor, values_mark(tensor, leaf)))
        now.tensors = [(Ref(tensor), mark) for tensor, mark in tensors]
        figure = plain_number(torch, held_at(one.figure, names))
        now.beside = figure is not None and (figure < best if one.greater else figure > best)
        if before.best != best or not (one.strict or (now.beside and before.beside)):
            return bool(tensors)
        changed = 0
        for (ref, old), (tensor, mark) in zip(before.tensors, tensors, strict=False):
            changed += ref() is tensor and old != mark
        if changed:
            self._told.add(one)
            facts = {"name": one.name, "best": ast.unparse(one.best), "value": float(f"{best:.4g}"), "tensors": changed}
            self._scene.tell(KeptTensorsChanged, **facts, read=one.read, site=one.site)
        return bool(tensors) and not changed


def _names_of(frame: FrameType) -> Mapping[str, Any]:
    """Return the variables of a frame, and the global ones."""
    return {**frame.f_globals, **variables(frame)} if frame.f_code.co_flags & 1 else frame.f_globals


def _objects(frames: Iterable[FrameType]) -> Iterator[Any]:
    """Yield the objects of classes of the program in variables of frames, without repeats."""
    seen: set[int] = set()
    for frame in frames:
        for held in list(_names_of(frame).values()):
            if id(held) not in seen and len(seen) < _MOST_OBJECTS and own_dict(held) is not None:
                seen.add(id(held))
                yield held
