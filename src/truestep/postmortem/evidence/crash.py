"""An uncaught error with its frames: their code, and the values of their variables."""

from __future__ import annotations

import ast
import dis
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from truestep import source
from truestep.events import Site
from truestep.findings import Mark
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.frame_values import MISSING
from truestep.postmortem.evidence.source_code import File, Setting
from truestep.probes.context.local_variables import argument, variables

if TYPE_CHECKING:
    from truestep.probes import Scene

LIMIT_S = 1.0
_MOST_FRAMES = 200


class TooLong(Exception):
    """The time for the examination is over."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The line that set a value."""

    site: Site
    node: ast.AST
    frame: Frame
    setting: Setting | None = None


class Frame:
    """One of the user's frames, as it was when the error passed through it."""

    def __init__(self, crash: Crash, frame: FrameType, at: int, adjacent: bool) -> None:
        self.crash = crash
        self.code = frame.f_code
        self.site = _site(frame.f_code, at)
        self.adjacent = adjacent
        """True if the user's frame before it called this one, with at most torch's module call between them."""
        self._frame = frame
        self._names: dict[str, Any] | None = None
        self.file = crash.file(self.code.co_filename)
        self.scope = self.file.scope(self.code) if self.file is not None else None
        node = self.file.at(self.site) if self.file is not None else None
        self.node = node
        """The expression that failed, or the call that led to the failure."""

    @property
    def names(self) -> dict[str, Any]:
        """The variables that the frame's code uses, local ones before global ones."""
        if self._names is None:
            everything = self._frame.f_globals
            self._names = {name: everything[name] for name in self.code.co_names if name in everything}
            self._names |= variables(self._frame)
        return self._names

    def value(self, node: ast.AST | None) -> Any:
        return frame_values.evaluate(node, self.names)

    def place(self, node: ast.AST) -> Site:
        assert self.file is not None
        return self.file.site(node, self.code.co_name)

    def statements(self) -> Iterator[ast.stmt]:
        """Yield the statements of the frame's code in source order."""
        if self.scope is not None:
            yield from (node for node in source_code.walk(self.scope) if isinstance(node, ast.stmt))

    def reached(self, key: str, before: ast.AST | None = None) -> Setting | None:
        """Return the statement that set a variable last; None if that depends on the run."""
        before = self.node if before is None else before
        if self.file is None or self.scope is None or before is None:
            return None
        return self.file.reached(self.scope, key, before)

    def is_parameter(self, key: str) -> bool:
        arguments = getattr(self.scope, "args", None)
        if not isinstance(arguments, ast.arguments) or self.file is None or self.scope is None:
            return False
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        return any(one.arg == key for one in named) and not self.file.settings(self.scope, key)


class Crash:
    """The error, the frames and the values left by a run that crashed."""

    def __init__(self, error: BaseException, scene: Scene) -> None:
        self.scene = scene
        self.deadline = time.monotonic() + LIMIT_S
        first = error.args[0] if error.args else ""
        self.message = first if type(first) is str else ""
        self.kind = type(error)
        self.frames: list[Frame] = []
        """Frames of the user's code, outermost first."""
        self.inner: list[FrameType] = []
        """Frames of torch below the last one of the user, outermost first."""
        self._files: dict[str, File | None] = {}
        steps = list(itertools.islice(_steps(error.__traceback__), _MOST_FRAMES))
        self.raised_by_user = False
        adjacent = False
        for step in steps:
            frame = step.tb_frame
            kind = scene.sites.kind(frame.f_code)
            if kind == 0:
                self.frames.append(Frame(self, frame, step.tb_lasti, adjacent))
                self.inner.clear()
                adjacent = True
            elif kind == 2:
                self.inner.append(frame)
            else:
                adjacent = False
        if steps and scene.sites.kind(steps[-1].tb_frame.f_code) != 2:
            self.raised_by_user = _raises(steps[-1].tb_frame.f_code, steps[-1].tb_lasti)

    @property
    def last(self) -> Frame:
        return self.frames[-1]

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TooLong

    def file(self, path: str) -> File | None:
        if path not in self._files:
            self.check()
            lines = source.read(path).lines
            try:
                self._files[path] = File(path, "\n".join(lines) + "\n", self.check) if lines else None
            except (SyntaxError, ValueError):
                self._files[path] = None
        return self._files[path]

    def inner_value(self, name: str, value: str = "self") -> Any:
        """Return a variable of the innermost torch frame of that name; None without such a frame."""
        return next(self.inside(name, value), None)

    def calls(self, name: str, given: str) -> Iterator[tuple[Any, Any]]:
        """Yield ``self`` and an argument of the torch frames of a name, innermost first."""
        for frame in reversed(self.inner):
            if frame.f_code.co_name == name:
                yield argument(frame, "self"), argument(frame, given)

    def inside(self, name: str, value: str = "self") -> Iterator[Any]:
        """Yield a variable of the torch frames of that name, innermost first."""
        for frame in reversed(self.inner):
            if frame.f_code.co_name == name:
                found = argument(frame, value)
                if found is not None:
                    yield found

    # --- where values came from --------------------------------------------------------------------------------------

    def origin(self, frame: Frame, node: ast.AST | None) -> Origin | None:
        """Return the origin of an expression's value: the line that set the variable, also in a caller."""
        while isinstance(node, ast.Name | ast.Attribute) and frame.file is not None:
            key = ast.unparse(node)
            setting = frame.reached(key)
            if setting is not None:
                return Origin(frame.place(setting.node), setting.node, frame, setting)
            if not frame.is_parameter(key):
                return None
            given = self.given(frame, key)
            if given is None:
                return None
            frame, node = given
            if not isinstance(node, ast.Name | ast.Attribute):
                return Origin(frame.place(node), node, frame)
        return None

    def given(self, frame: Frame, name: str) -> tuple[Frame, ast.AST] | None:
        """Return the caller of a frame, and the argument that it passed for a parameter."""
        position = self.frames.index(frame)
        if not position or not frame.adjacent:
            return None
        caller = self.frames[position - 1]
        arguments = getattr(frame.scope, "args", None)
        if not isinstance(caller.node, ast.Call) or not isinstance(arguments, ast.arguments):
            return None
        if any(isinstance(one, ast.Starred) for one in caller.node.args):
            return None
        for keyword in caller.node.keywords:
            if keyword.arg == name:
                return caller, keyword.value
        named = [one.arg for one in [*arguments.posonlyargs, *arguments.args]]
        if named and named[0] == "self":
            named = named[1:]
        at = named.index(name) if name in named else len(caller.node.args)
        return (caller, caller.node.args[at]) if at < len(caller.node.args) else None

    # --- names of things ---------------------------------------------------------------------------------------------

    def modules(self) -> Iterator[tuple[str, Any, Frame]]:
        """Yield the modules in variables, each with its name in the outermost frame."""
        seen: set[int] = set()
        for frame in self.frames:
            for name, value in list(frame.names.items()):
                holders = [(name, value)]
                if name == "self" and not frame_values.is_module(value):
                    holders += [(f"self.{key}", item) for key, item in frame_values.attributes(value).items()]
                for path, item in holders:
                    if frame_values.is_module(item) and id(item) not in seen:
                        seen.add(id(item))
                        yield path, item, frame

    def optimizers(self) -> Iterator[tuple[str, Any, Frame]]:
        """Yield the optimizers in variables."""
        for frame in reversed(self.frames):
            for name, value in list(frame.names.items()):
                if frame_values.is_optimizer(value):
                    yield name, value, frame
                elif name == "self":
                    for key, item in frame_values.attributes(value).items():
                        if frame_values.is_optimizer(item):
                            yield f"self.{key}", item, frame

    def name_of(self, module: Any) -> str:
        """Return the qualified name of a module, from the outermost variable that leads to it; "" if none does."""
        for name, root, _ in self.modules():
            self.check()
            for path, one in frame_values.tree(root, "" if name == "self" else name):
                if one is module and path:
                    return path
        return ""

    def built(self, module: Any, name: str) -> Site | None:
        """Return the line that created a module: ``self.fc = nn.Linear(...)`` of its owner, or one of a variable."""
        for _, root, frame in self.modules():
            if root is module and frame.file is not None and frame.scope is not None:
                settings = [s for s in frame.file.settings(frame.scope, name) if isinstance(s.value, ast.Call)]
                if len(settings) == 1:
                    return frame.place(settings[0].node)
            for _, owner in frame_values.tree(root):
                key = next((key for key, part in frame_values.children(owner).items() if part is module), None)
                found = None if key is None else self._built_in(owner, key)
                if found is not None:
                    return found
        return None

    def _built_in(self, owner: Any, key: str) -> Site | None:
        """Return the line of ``self.key = ...`` in ``__init__`` of an object's class."""
        maker = vars(type(owner)).get("__init__")
        code = getattr(maker, "__code__", None)
        if not isinstance(code, CodeType) or self.scene.sites.kind(code) != 0:
            return None
        file = self.file(code.co_filename)
        scope = None if file is None else file.scope(code)
        if file is None or scope is None:
            return None
        settings = file.settings(scope, f"self.{key}")
        return file.site(settings[0].node, "__init__") if len(settings) == 1 else None

    def fails(self, label: str = "fails here") -> Mark:
        return Mark(self.last.site, label)


def _steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _site(code: CodeType, at: int) -> Site:
    position = next(itertools.islice(code.co_positions(), at // 2, None), (None, None, None, None))
    line, end_line, column, end_column = position
    if line is None or end_line is None or column is None or end_column is None:
        return Site(code.co_filename, line or code.co_firstlineno, function=code.co_name)
    return Site(code.co_filename, line, column, end_line, end_column, code.co_name)


def _raises(code: CodeType, at: int) -> bool:
    """Return True if a frame ended by a ``raise`` statement in its code."""
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return instruction.opname in ("RAISE_VARARGS", "RERAISE")
    return True


def operand(crash: Crash, node: ast.AST) -> str:
    """Return an expression as short text."""
    text = ast.unparse(node)
    return text if len(text) <= 40 and "\n" not in text else ""


__all__ = ["LIMIT_S", "MISSING", "Crash", "Frame", "Origin", "TooLong", "operand"]
