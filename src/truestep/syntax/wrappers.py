"""Decorators of the same file: the functions that run in place of the functions that they decorate."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from truestep.syntax.names import dotted
from truestep.syntax.places import Call, Scope

if TYPE_CHECKING:
    from truestep.syntax.program import Program


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A function that a decorator puts in the place of another one."""

    function: Scope
    calls: frozenset[Call]
    """Its calls of the decorated function."""
    names: dict[str, str]
    """Names in it that stand for parameters of the decorated function, or for constants that the decorator gets."""


class Wrappers:
    """Finds the wrappers of the decorated functions of one file."""

    def __init__(self, program: Program) -> None:
        self._program = program

    @functools.cached_property
    def _by_function(self) -> dict[Scope, tuple[Wrapper, ...]]:
        found = {}
        for scope in self._program.scopes:
            if scope.decorators and isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
                made = [self._wrapper(one, scope) for one in scope.node.decorator_list]
                if any(made):
                    found[scope] = tuple(one for one in made if one is not None)
        return found

    @functools.cached_property
    def calls(self) -> frozenset[Call]:
        """Return the calls of decorated functions in their wrappers."""
        return frozenset(call for made in self._by_function.values() for one in made for call in one.calls)

    def of(self, scope: Scope) -> tuple[Wrapper, ...]:
        """Return the wrappers of a function, outermost first."""
        return self._by_function.get(scope, ())

    def _wrapper(self, node: ast.expr, decorated: Scope) -> Wrapper | None:
        assert decorated.parent is not None
        names: dict[str, str] = {}
        decorator = self._program.definition(dotted(node), decorated.parent)
        if isinstance(node, ast.Call):  # a function that makes the decorator
            maker = self._program.definition(dotted(node.func), decorated.parent)
            made = self._program.call_at.get(node)
            if maker is None or made is None:
                return None
            names = self._program.values.constants(made, maker)
            decorator = _returned(maker)
        if decorator is None or decorator.kind != "function" or not decorator.parameters:
            return None
        wrapper, given = _returned(decorator), decorator.parameters[0]
        if wrapper is None or wrapper.kind != "function" or given in wrapper.bindings:
            return None
        calls = frozenset(call for call in wrapper.calls if call.method == given and not call.key)
        names |= dict(zip(wrapper.parameters, decorated.parameters, strict=False))
        return Wrapper(wrapper, calls, names) if calls else None


def _returned(scope: Scope) -> Scope | None:
    """Return the inner function that a function returns; None if it returns anything else."""
    names = {dotted(value) for value, _, _ in scope.returns}
    return scope.inner.get(names.pop()) if len(names) == 1 else None
