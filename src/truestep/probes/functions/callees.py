"""Functions of the program that a training calls, by the source of its frames. No code of the program runs."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from truestep import source
from truestep.probes.context.local_variables import own_dict, variables
from truestep.probes.context.scene import Scene
from truestep.probes.unread.statements import scope_of
from truestep.seams.code.functions import code_of

_MOST_FUNCTIONS = 64
_MOST_DEPTH = 5
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Names = Mapping[str, object]


def callees(scene: Scene, frames: list[FrameType]) -> list[FunctionType]:
    """Return the functions of the program that some frames call, and those that these call, outermost first.

    A function that is passed to a call counts too: ``fit(predict, weights)``.

    Args:
        scene: the scene.
        frames: frames of the program.
    """
    begun: list[tuple[ast.AST, Names, int]] = []
    for frame in frames:
        scope = scope_of(frame.f_code)
        if scope is not None:
            begun.append((scope, {**frame.f_globals, **variables(frame)}, 0))
    return _reached(scene, begun)


def called_by(scene: Scene, function: FunctionType) -> list[FunctionType]:
    """Return the functions of the program that a function calls, and those that these call."""
    scope = scope_of(code_of(function))
    return [] if scope is None else _reached(scene, [(scope, _names_in(function, None), 0)])


def _reached(scene: Scene, begun: list[tuple[ast.AST, Names, int]]) -> list[FunctionType]:
    """Return the functions that some scopes call, given the values of their names and their depths."""
    found: list[FunctionType] = []
    seen: set[int] = set()
    queue = deque(begun)
    while queue and len(found) < _MOST_FUNCTIONS:
        scope, names, depth = queue.popleft()
        for function, owner in _called(scope, names, scene.torch.nn.Module):
            code = code_of(function)
            if id(function) in seen or scene.sites.kind(code) != 0:
                continue
            seen.add(id(function))
            found.append(function)
            inner = scope_of(code)
            if inner is not None and depth < _MOST_DEPTH:
                queue.append((inner, _names_in(function, owner), depth + 1))
    return found[:_MOST_FUNCTIONS]


def _called(scope: ast.AST, names: Names, module: type) -> Iterator[tuple[FunctionType, object]]:
    """Yield the functions that a scope calls or passes on, each with the object that it is a method of, if any."""
    for node in _nodes(scope):
        if not isinstance(node, ast.Call):
            continue
        given = (*node.args, *(keyword.value for keyword in node.keywords))
        for place in (node.func, *(one for one in given if isinstance(one, ast.Name | ast.Attribute))):
            value = _value(place, names)
            function, owner = _function(value)
            if function is not None and not isinstance(owner, module):
                yield function, owner


def _nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, or of a file without its functions and classes."""
    if not isinstance(scope, ast.Module):
        yield from source.walk(scope)
        return
    for statement in scope.body:
        if not isinstance(statement, _SCOPES):
            yield from source.walk(statement)


def _value(node: ast.expr, names: Names) -> object:
    """Return the value of a name, or of an attribute that is stored; None for any other expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    owner = _value(node.value, names)
    if isinstance(owner, ModuleType):
        return vars(owner).get(node.attr)
    if owner is None:
        return None
    own = own_dict(owner)
    if own is not None and node.attr in own:
        return own[node.attr]
    value = _of_class(owner if isinstance(owner, type) else type(owner), node.attr)
    return MethodType(value, owner) if isinstance(value, FunctionType) and not isinstance(owner, type) else value


def _of_class(kind: type, name: str) -> object:
    """Return an attribute of a class, as it is stored; a static method as its function."""
    for one in kind.__mro__:
        if name in vars(one):
            value = vars(one)[name]
            return value.__func__ if isinstance(value, staticmethod) else value
    return None


def _function(value: Any) -> tuple[FunctionType | None, object]:
    """Return the function that a call of a value runs, and the object that it is a method of."""
    if type(value) is partial:
        value = value.func
    if isinstance(value, MethodType):
        return (value.__func__, value.__self__) if isinstance(value.__func__, FunctionType) else (None, None)
    if isinstance(value, FunctionType):
        return value, None
    if value is None or isinstance(value, type) or own_dict(value) is None:
        return None, None
    method = _of_class(type(value), "__call__")
    return (method, value) if isinstance(method, FunctionType) else (None, None)


def _names_in(function: FunctionType, owner: object) -> dict[str, object]:
    """Return the names that a function can use before it is called: globals, enclosing variables, its object."""
    code = code_of(function)
    names: dict[str, object] = dict(function.__globals__)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not set yet
            names.pop(name, None)
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        names.pop(name, None)
    if owner is not None and code.co_argcount:
        names[code.co_varnames[0]] = owner
    return names
