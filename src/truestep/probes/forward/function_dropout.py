"""Dropout in functions without a module: does a mode that the program passes along ever turn it off?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from truestep import source
from truestep.events import FunctionDropped, Site
from truestep.probes.context.local_variables import argument
from truestep.probes.context.names import call_at
from truestep.probes.forward.switches import is_always_on, is_imported, measures, switch_of
from truestep.seams.refs import Ref

if TYPE_CHECKING:
    from truestep.probes.context.scene import Scene

_SAMPLED = 3
"""From this many draws for one input, dropout is sampled on purpose."""
_MOST_DRAWS = 200
_OUTWARDS = 3
_WITH_MODE = 3


@dataclass(slots=True)
class _Function:
    """A function of the program with dropout."""

    off: bool = False
    """Whether a call turned dropout off in it."""
    off_apart: str = ""
    """The mode that did so without gradients."""


@dataclass(slots=True)
class _Line:
    """A line that applies dropout outside of modules."""

    site: Site
    function: _Function
    mode: str
    """The parameter that is passed as the mode; "" if the call leaves it out."""
    trained: bool = False
    """Whether it dropped values that depend on parameters."""
    draws: int = 0
    """Draws of a trained line without gradients."""
    place: Site | None = None
    """The call of an evaluation with such draws."""
    given: Ref | None = None
    same: int = 0
    sampled: bool = False


class FunctionDropout:
    """Yields `FunctionDropped` at the end of the run."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._functions: dict[int, _Function] = {}
        self._lines: dict[tuple[int, int], _Line | None] = {}

    def drawn(self, input: Any, train: bool, frame: FrameType) -> None:
        """Enter a call of a dropout function in a user's frame."""
        key = id(frame.f_code), frame.f_lasti
        line = self._lines[key] if key in self._lines else self._met(key, frame)
        if line is None or line.sampled or line.draws >= _MOST_DRAWS:
            return
        grad = self._scene.torch.is_grad_enabled()
        if not train:
            line.function.off = True
            line.function.off_apart = line.function.off_apart or ("" if grad else line.mode)
        elif grad:
            line.trained = line.trained or bool(input.requires_grad)
            line.given = None
        elif line.trained:
            line.draws += 1
            if line.mode and not line.function.off:
                self._evaluated(line, frame)

    def _met(self, key: tuple[int, int], frame: FrameType) -> _Line | None:
        """Enter a line, or that it is not followed."""
        scene, code, line = self._scene, frame.f_code, None
        scene.sites.keep(code)
        site = scene.sites.at(frame) if scene.sites.kind(code) == 0 else None
        call = call_at(site)
        first = argument(frame, code.co_varnames[0]) if code.co_argcount else None
        if site is not None and call is not None and not issubclass(type(first), scene.torch.nn.Module):
            mode = switch_of(code, site.line, site.column)
            if mode or _leaves_mode_out(call):
                function = self._functions.setdefault(id(code), _Function())
                line = _Line(site, function, mode)
        self._lines[key] = line
        return line

    def _evaluated(self, line: _Line, frame: FrameType) -> None:
        """Look for the call of an evaluation that makes a number of the result, and for several draws of one input."""
        given = _input(frame, self._scene.torch.Tensor)
        again = given is not None and line.given is not None and line.given() is given
        line.same = line.same + 1 if again else 1
        line.given = None if given is None else Ref(given)
        if line.same >= _SAMPLED and not _is_looped(frame.f_code, line.site.line):
            line.sampled = True
            return
        outer, use = self._scene.sites.above(frame), "returned"
        for _ in range(_OUTWARDS):
            if outer is None or use != "returned":
                break
            use = measures(outer.f_code, outer.f_lineno)
            if use == "number" and line.place is None:
                line.place = self._scene.sites.at(outer)
            outer = self._scene.sites.above(outer)
        line.sampled = use == "sampled"

    def last(self) -> Iterator[FunctionDropped]:
        """Yield the lines that stay on."""
        for line in self._lines.values():
            if line is None or line.sampled or not line.draws:
                continue
            name, mode = line.site.function, line.mode
            if not mode and line.function.off_apart:
                yield FunctionDropped(function=name, follows=line.function.off_apart, draws=line.draws, site=line.site)
            elif mode and not line.function.off and line.place is not None and self._stays_on(line.site, mode):
                yield FunctionDropped(function=name, mode=mode, draws=line.draws, site=line.site, call=line.place)

    def _stays_on(self, site: Site, mode: str) -> bool:
        """Return True if no call in the program turns a mode off; no other file may import that of the function."""
        elsewhere = any(is_imported(site.path, path) for path in self._scene.sites.own_files() if path != site.path)
        return not elsewhere and is_always_on(site.path, site.function, mode)


def _leaves_mode_out(call: ast.Call) -> bool:
    """Return True if a call of a dropout function does not pass the mode."""
    loose = any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords)
    return not loose and len(call.args) < _WITH_MODE and all(one.arg != "training" for one in call.keywords)


def _input(frame: FrameType, tensor: type) -> Any:
    """Return the first argument of a function that is a tensor."""
    for name in frame.f_code.co_varnames[: frame.f_code.co_argcount]:
        value = argument(frame, name)
        if type(value) is tensor:
            return value
    return None


def _is_looped(code: CodeType, line: int) -> bool:
    """Return True if a line is in a loop, of its function as far as the file shows it."""
    tree = source.parsed(code.co_filename)
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
    return tree is None or any(
        isinstance(node, loops) and code.co_firstlineno <= node.lineno <= line <= (node.end_lineno or 0)
        for node in source.walk(tree)
    )
