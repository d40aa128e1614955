"""Random masks that a function of the program draws with an argument that no call turns off, also in evaluation.

Draws of ``torch.rand`` are not observed. The source shows the function, where it is called for the training under way;
that its evaluation ran as well is seen by the numbers that this left in the variables of a frame.
"""

from __future__ import annotations

import ast
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from truestep.events import FunctionDropped
from truestep.probes.context.local_variables import variables
from truestep.probes.forward.switches import evaluations, is_always_on, is_imported, masked_by, numbers_from
from truestep.probes.unread.bound_updates import reached
from truestep.probes.variables.origins import place_of, resolved

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_DEEP = 2


class MaskSwitches:
    """Emits `FunctionDropped`."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._functions: dict[CodeType, tuple[CodeType, ...]] = {}
        """Function of the training to those with such masks that it calls."""
        self._told: set[CodeType] = set()

    def look(self, frames: list[FrameType]) -> None:
        """Look at the user's frames when gradients are taken, from the innermost outwards."""
        masked = [one for frame in frames for one in self._masked(frame)]
        for code in masked:
            found = masked_by(code)
            if found is None or code in self._told:
                continue
            mode, draw = found
            for name, call in evaluations(code.co_filename, code.co_name):
                if any(_ran(frame, name) for frame in frames):
                    self._told.add(code)
                    self._tell(code, mode, draw, call)
                    break

    def _masked(self, frame: FrameType) -> tuple[CodeType, ...]:
        known = self._functions.get(frame.f_code)
        if known is None:
            names = {**frame.f_globals, **variables(frame)}
            known = tuple(self._called(frame.f_code, frame.f_lineno, names, _DEEP))
            self._functions[frame.f_code] = known
        return known

    def _called(self, code: CodeType, line: int, names: dict[str, Any], depth: int) -> list[CodeType]:
        """Return the functions with a mask that a part of the training calls, also through another function."""
        found: list[CodeType] = []
        for call in reached(code, line).calls:
            called = resolved(call.func, names)
            if type(called) is not FunctionType or self._scene.sites.kind(called.__code__) != 0:
                continue
            inner = called.__code__
            if masked_by(inner) is not None and self._stays_on(inner):
                found.append(inner)
            elif depth > 1:
                found += self._called(inner, 0, called.__globals__, depth - 1)
        return found

    def _stays_on(self, code: CodeType) -> bool:
        """Return True if no call of the program turns the mask of a function off."""
        found, path = masked_by(code), code.co_filename
        elsewhere = any(is_imported(path, other) for other in self._scene.sites.own_files() if other != path)
        return found is not None and not elsewhere and is_always_on(path, code.co_name, found[0])

    def _tell(self, code: CodeType, mode: str, draw: ast.Call, call: ast.Call) -> None:
        site, place = place_of(code, draw), place_of(code, call)
        self._scene.emit(FunctionDropped(function=code.co_name, mode=mode, draws=1, site=site, call=place))


def _ran(frame: FrameType, name: str) -> bool:
    """Return True if a frame has the numbers that a call of a function returned."""
    found = numbers_from(frame.f_code, name)
    own = variables(frame) if found else {}
    return any(all(type(own.get(one)) in (float, int) for one in names) for names in found)
