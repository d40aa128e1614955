"""The figure by which a program chooses its weights: the best value so far, next to the losses of each epoch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from truestep.events import ChoiceRead
from truestep.probes.context.guards import Guard, guards
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import plain_number

_WORD = re.compile(r"[^\W_]+")
_LOSSES = frozenset({"loss", "losses"})
_TRAINING = frozenset({"train", "training", "tr"})
_HELD_OUT = frozenset({"val", "valid", "validation", "dev"})
_OTHERS = frozenset({"best", "min", "lowest", "total", "sum", "count", "num", "fn", "prev", "previous", "running"})
_MOST = 256
"""Evaluations in which the values are read."""
_MOST_OBJECTS = 64
_MOST_ITEMS = 16
_LEAST = 3
"""Least number of evaluations, and of different best values less one."""


@dataclass(slots=True)
class _Course:
    """The best value of a branch after each evaluation, and the losses beside it."""

    best: list[float] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    """Variable to its values; those that are missing at times are left out."""


class Choices:
    """Emits `ChoiceRead`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._courses: dict[Guard, _Course] = {}
        self._reads = 0

    def evaluated(self, frame: FrameType | None) -> None:
        """Read the best values and the losses, after an evaluation."""
        if self._reads >= _MOST or frame is None:
            return
        self._reads += 1
        frames = self._scene.sites.users(frame)
        known = {guard for one in frames for _, _, guard in guards(one.f_code.co_filename) if _is_choice(guard)}
        if not known:
            return
        spaces = [variables(one) if one.f_code.co_flags & 1 else one.f_globals for one in frames]
        losses = {name: value for space in reversed(spaces) for name, value in self._losses(space)}
        objects = list(_objects(spaces))
        for guard in known:
            number = self._number(guard, frames, spaces, objects)
            if number is None:
                continue
            course = self._courses.setdefault(guard, _Course())
            if not course.best:
                course.losses = {name: [] for name in losses}
            course.best.append(number)
            course.losses = {name: [*values, losses[name]] for name, values in course.losses.items() if name in losses}

    def _losses(self, space: Mapping[str, object]) -> Iterator[tuple[str, float]]:
        """Yield the variables and entries that are called the loss of a training or of a validation."""
        for name, held in list(space.items()):
            parts = list(held.items()) if type(held) is dict and len(held) <= _MOST_OBJECTS else [(name, held)]
            for key, value in parts:
                words = set(_WORD.findall(key.lower())) if type(key) is str else set()
                if words & _LOSSES and words & (_TRAINING | _HELD_OUT) and not words & _OTHERS:
                    number = plain_number(self._scene.torch, value)
                    if number is not None:
                        yield key, number

    def _number(
        self, guard: Guard, frames: list[FrameType], spaces: Sequence[Mapping[str, object]], objects: list[Any]
    ) -> float | None:
        """Return the best value so far: of an object of the class with the branch, or of a frame in its file."""
        owner, _, name = guard.best.rpartition(".")
        if owner == "self":
            held = [own_dict(one) or {} for one in objects if type(one).__name__ == guard.owner]
            return plain_number(self._scene.torch, held[0].get(name)) if len(held) == 1 else None
        for frame, space in zip(frames, spaces, strict=True):
            if frame.f_code.co_filename == guard.site.path and guard.best in space:
                return plain_number(self._scene.torch, space[guard.best])
        return None

    def last(self) -> Iterator[ChoiceRead]:
        """Yield the branches that choose by a loss of the training, beside one of a validation."""
        for guard, course in self._courses.items():
            if len(course.best) < _LEAST or len(set(course.best)) < _LEAST - 1:
                continue
            followed = [name for name, values in course.losses.items() if _follows(course.best, values, guard.greater)]
            beside = [name for name in course.losses if _words(name) & _HELD_OUT and name not in followed]
            trained = [name for name in followed if _words(name) & _TRAINING]
            if trained and beside and len(trained) == len(followed):
                yield ChoiceRead(
                    name=guard.best, by=trained[0], beside=beside[0], evaluations=len(course.best), site=guard.site
                )


def _is_choice(guard: Guard) -> bool:
    """Return True for a branch that keeps weights, for smaller figures, and not to return to them after a spike."""
    words = _words(guard.best)
    return not guard.greater and words.isdisjoint(_TRAINING) and guard.keeps and not guard.returns


def _follows(best: list[float], values: list[float], greater: bool) -> bool:
    """Return True if a best value is the least of the values so far, after each evaluation."""
    least: list[float] = []
    for value in values:
        least.append(min([value, *least[-1:]]) if not greater else max([value, *least[-1:]]))
    return best == least


def _objects(spaces: Sequence[Mapping[str, object]]) -> Iterator[Any]:
    """Yield the objects that variables hold, and those in attributes of these and in their lists, without repeats."""
    seen: dict[int, Any] = {}
    for space in spaces:
        for held in list(space.values()):
            parts = [part for value in (own_dict(held) or {}).values() for part in _listed(value)]
            for one in (*_listed(held), *parts):
                if own_dict(one) is not None and len(seen) < _MOST_OBJECTS:
                    seen[id(one)] = one
    yield from seen.values()


def _listed(held: Any) -> list[Any]:
    return list(held) if type(held) in (list, tuple) and len(held) <= _MOST_ITEMS else [held]


def _words(name: str) -> set[str]:
    return set(_WORD.findall(name.lower()))
