"""Figures that a function computes at the end of an evaluation: its variables have gone when figures are read.

When the loader of a loop ends, the statements behind the loop are repeated with the variables of that moment. Those
behind a call without a loop around it are repeated after the call.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager
from time import thread_time
from types import CodeType, FrameType
from typing import Any, NamedTuple

from truestep.events import Site
from truestep.probes.context.local_variables import readable
from truestep.probes.context.scene import Scene
from truestep.probes.copies.objects import Refused
from truestep.probes.evaluation.statements import Behind, Statements
from truestep.probes.forward.results import call_at, loop_at

_MOST = 256
"""Ends that are read in a run."""
_MOST_S = 0.25


class FunctionEnd(NamedTuple):
    """The end of a function that evaluates.

    Attributes:
        code: its code.
        names: its variables with known values.
        returned: the values that it returns: label or name, value, place.
    """

    code: CodeType
    names: dict[str, Any]
    returned: tuple[Returned, ...]


class Returned(NamedTuple):
    """A value that a function returns.

    Attributes:
        label: the key of a dict, the text in front of the call that is printed, or else the name of the function.
        value: the value.
        text: its source.
        place: its line.
    """

    label: str
    value: Any
    text: str
    place: Site


class FunctionEnds:
    """Reads the ends of functions.

    Args:
        scene: the scene.
        aside: returns the context manager in which statements are repeated.
    """

    def __init__(self, scene: Scene, aside: Callable[[], AbstractContextManager[None]]) -> None:
        self._scene = scene
        self._aside = aside
        self._read = 0
        self._spent_s = 0.0

    def after_loop(self, frame: FrameType) -> FunctionEnd | None:
        """Return the end of a function after its loop over a loader; None if it is not known.

        Args:
            frame: the user's frame, at the loop.
        """
        if not frame.f_code.co_flags & 1 or not readable(frame):
            return None
        if self._read >= _MOST or self._spent_s > _MOST_S:
            return None
        found = loop_at(frame.f_code.co_filename, frame.f_lineno)
        if found is None:
            return None
        self._read += 1
        began = thread_time()
        try:
            with self._aside(), self._scene.torch.no_grad():
                statements = Statements(self._scene, _nothing, 0, _nothing, _nothing)
                behind = statements.behind(*found, frame)
        except Refused:
            return None
        finally:
            self._spent_s += thread_time() - began
        return self.after(frame, behind)

    def after(self, frame: FrameType, behind: Behind) -> FunctionEnd:
        """Return the end of the function of a frame, by the values of its last statements."""
        returned = () if behind.node is None else tuple(self._returned(frame, behind.returned, behind.node))
        return FunctionEnd(frame.f_code, behind.names, returned)

    def _returned(self, frame: FrameType, value: Any, node: ast.expr) -> list[Returned]:
        path = frame.f_code.co_filename
        if type(value) is dict and isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            known = [(key.value, part) for key, part in entries if isinstance(key, ast.Constant) and key.value in value]
            return [Returned(str(key), value[key], ast.unparse(part), _place(path, part)) for key, part in known]
        label = self._label(frame.f_back) or frame.f_code.co_name
        return [Returned(label, value, ast.unparse(node), _place(path, node))]

    def _label(self, caller: FrameType | None) -> str:
        """Return the text in front of the call at which a frame is: printed text, or the key of a dict."""
        site = self._scene.sites.at(caller)
        found = None if site is None else call_at(site)
        if found is None:
            return ""
        call, parents = found
        up = parents.get(call)
        node: ast.AST = call
        if isinstance(up, ast.FormattedValue):
            node, up = up, parents.get(up)
        parts: list[ast.expr] = []
        match up:
            case ast.Dict(keys=keys, values=values) if node in values:
                key = keys[values.index(call)]
                return str(key.value) if isinstance(key, ast.Constant) else ""
            case ast.keyword(arg=str() as name):
                return name
            case ast.JoinedStr(values=parts) | ast.Call(args=parts):
                pass
        places = [place for place, part in enumerate(parts) if part is node]
        before = parts[places[0] - 1] if places and places[0] else None
        return before.value if isinstance(before, ast.Constant) and isinstance(before.value, str) else ""


def _place(path: str, node: ast.expr) -> Site:
    return Site(path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)


def _nothing(*given: Any) -> None:
    """Leave the comparisons of repeated statements to the first time."""
