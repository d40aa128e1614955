"""Numbers that a program chooses by samples of its test, such as the threshold of a decision.

The functions around the calls of evaluations are known from their frames. Their statements are read at the end of the
run: those without a branch around them have run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import Any

from truestep import source
from truestep.events import NumberChosen, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.syntax import ChosenByTest, chosen_by_test, of_part

_MOST = 64
"""Functions that are kept."""
_PLAIN = (int, float, bool, str, bytes, type(None))
"""Values of which equal ones are one object."""


class ChosenNumbers:
    """Yields `NumberChosen`.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._known: set[CodeType] = set()
        self._functions: dict[tuple[str, int], bool] = {}
        """File and first line of a function, 0 for a module, to whether its parts are different objects."""

    def called(self, user: FrameType) -> Iterator[CodeType]:
        """Handle a call of a model in an evaluation, at the user's frame; yield the functions that call one first."""
        for frame in self._scene.sites.users(user):
            code = frame.f_code
            if code in self._known or len(self._known) >= _MOST:
                continue
            self._known.add(code)
            local = bool(code.co_flags & 1)
            names: Mapping[str, object] = variables(frame) if local else frame.f_globals
            place = code.co_filename, code.co_firstlineno if local else 0
            self._functions[place] = self._functions.get(place, True) and _differ(names)
            yield code

    def last(self) -> Iterator[NumberChosen]:
        """Yield the choices of the functions with evaluations, at the end of the run."""
        for path in dict.fromkeys(path for path, _ in self._functions):
            tree = source.parsed(path)
            for choice in () if tree is None else chosen_by_test(tree):
                if choice.always and self._functions.get((path, choice.first)):
                    yield _event(path, choice)


def _event(path: str, choice: ChosenByTest) -> NumberChosen:
    places = [
        Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        for node in (choice.node, choice.figure)
    ]
    return NumberChosen(name=choice.name, by=choice.by, site=places[0], figure=places[1])


def _differ(names: Mapping[str, Any]) -> bool:
    """Return False if a variable of the test and one of a part for choices hold one object."""
    parts: dict[str, set[int]] = {"test": set(), "choice": set(), "": set()}
    for name, value in names.items():
        if type(value) not in _PLAIN:
            parts[of_part(name)].add(id(value))
    return parts["test"].isdisjoint(parts["choice"])
