"""Values of names: the assignments that reach a use, and the expression that a name stands for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from truestep.syntax.names import dotted
from truestep.syntax.places import Binding, Call, Context, Scope

if TYPE_CHECKING:
    from truestep.syntax.program import Program

_DEEPEST = 12
MOST = 64
"""Most assignments to one name that are compared; a name with more of them is unknown."""


class Values:
    """Follows names to their assignments, through `self.`, parameters and functions of the same file."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._attributes: dict[tuple[int, str], list[Binding]] = {}

    def bindings(self, key: str, scope: Scope) -> list[Binding]:
        """Return all assignments to a name or to an attribute of `self`, as seen from a scope."""
        head, dot, rest = key.partition(".")
        owner = scope.owner if dot and head in ("self", "cls") else None
        if owner is not None:
            return self.attribute(owner, rest)
        place: Scope | None = scope
        while place is not None:
            if place.kind != "class" or place is scope:
                found = place.bindings.get(key)
                if found:
                    return found
                if dot and head in place.bindings:  # another attribute of a name that is bound here
                    return []
            place = place.parent
        return []

    def attribute(self, owner: Scope, name: str) -> list[Binding]:
        """Return all assignments to an attribute in the methods of a class and of its bases in this file."""
        known = self._attributes.get((id(owner), name))
        if known is None:
            known = []
            for place in self._program.lineage(owner):
                known += place.bindings.get(name, ())
                for scope in self._program.inside(place):
                    known += scope.bindings.get(f"self.{name}", ())
            self._attributes[id(owner), name] = known
        return known

    def reaching(self, key: str, context: Context, order: int) -> list[Binding] | None:
        """Return the assignments that a use of a name may see; None if some of them are unknown."""
        scope = context.scope
        found = scope.bindings.get(key)
        if not found or key.startswith(("self.", "cls.")):
            found = self.bindings(key, scope)
            return found or None
        if len(found) > MOST:
            return None
        before = [one for one in found if one.order < order and not _exclusive(one.context, context)]
        start = -1
        for number, one in enumerate(before):
            if one.how != "augmented" and _dominates(one.context, context):
                start = number
        seen = before[max(start, 0) :]
        if start < 0:
            return None if not seen else seen if scope.kind == "module" else None
        outside = seen[0].context.loop
        loop = context.loop
        for one in found:  # of an earlier pass of a loop around the use
            if one.order > order and one.context.loop is not None and loop is not None:
                common = next((each for each in reversed(loop.chain()) if one.context.loop.within(each)), None)
                if common is not None and not (outside is not None and outside.within(common)):
                    seen.append(one)
        return seen

    def maker(self, node: ast.expr, context: Context, order: int) -> ast.expr:
        """Return the expression that made an object; for an element of a comprehension, the one that made them all."""
        found, where, at = self.origin(node, context, order)
        if isinstance(found, ast.Subscript):
            around = self.origin(found.value, where, at)[0]
            if isinstance(around, ast.DictComp | ast.ListComp):
                return around.value if isinstance(around, ast.DictComp) else around.elt
        return found

    def only(self, key: str, context: Context, order: int) -> Binding | None:
        """Return the one assignment that a use of a name sees; None if there are others."""
        found = self.reaching(key, context, order)
        return found[0] if found is not None and len(found) == 1 else None

    def origin(self, node: ast.expr, context: Context, order: int, depth: int = 0) -> tuple[ast.expr, Context, int]:
        """Return the expression that a name stands for, followed through assignments of whole values.

        Where it cannot be followed, the name itself is returned.
        """
        here = (node, context, order)
        key = dotted(node)
        if depth > _DEEPEST:
            return here
        if type(node) is ast.Subscript:
            return self._element(node, context, order, depth)
        if not key:
            return here
        one = self.only(key, context, order)
        if one is None:
            return here
        if one.how == "parameter":
            passed = self.passed(one, context.scope)
            if passed is None:
                return here
            value, call = passed
            return self.origin(value, call.context, call.order, depth + 1)
        if one.how != "=" or one.value is None:
            return here
        part = part_of(one)
        return here if part is None else self.origin(part, one.context, one.order, depth + 1)

    def _element(self, node: ast.Subscript, context: Context, order: int, depth: int) -> tuple[ast.expr, Context, int]:
        """Return the element of a dict or list that is written out, and not changed later; else the node itself."""
        here, key = (node, context, order), dotted(node.value)
        if not key or not isinstance(node.slice, ast.Constant) or self.bindings(f"{key}[]", context.scope):
            return here
        if any(call.key == key for call in self._program.method(*_CHANGES)):
            return here
        found, where, at = self.origin(node.value, context, order, depth + 1)
        place = node.slice.value
        if isinstance(found, ast.Dict) and all(found.keys):
            same = [
                value
                for name, value in zip(found.keys, found.values, strict=True)
                if isinstance(name, ast.Constant) and name.value == place
            ]
            return self.origin(same[0], where, at, depth + 1) if len(same) == 1 else here
        if isinstance(found, ast.List | ast.Tuple) and isinstance(place, int) and place < len(found.elts):
            return self.origin(found.elts[place], where, at, depth + 1)
        return here

    def identity(self, node: ast.expr, context: Context, order: int) -> object:
        """Return a value that is equal for two expressions which certainly stand for one object."""
        found, where, at = self.origin(node, context, order)
        key = dotted(found)
        if not key:
            return found
        one = self.only(key, where, at)
        return one if one is not None else (key, where.scope)

    def passed(self, parameter: Binding, scope: Scope) -> tuple[ast.expr, Call] | None:
        """Return the argument for a parameter, if its function is called at one place of this file only."""
        owner = parameter.context.scope
        calls = self._program.calls_of(owner)
        if len(calls) != 1:
            return None
        value = argument(calls[0], owner, parameter.key)
        return None if value is None else (value, calls[0])

    def constants(self, call: Call, function: Scope) -> dict[str, str]:
        """Return the parameters of a function that get a constant in a call, by name or by default, with its text."""
        found = {}
        for name in function.parameters:
            value = argument(call, function, name)
            if value is None and not call.unpacks:
                value = function.default(name)
            if isinstance(value, ast.Constant) and isinstance(value.value, bool | str):
                found[name] = repr(value.value)
        return found

    def constant(self, node: ast.expr | None, context: Context, order: int) -> object:
        """Return the value of a constant expression or of a name that stands for one; `Ellipsis` if it is unknown."""
        if node is None:
            return ...
        found = self.origin(node, context, order)[0]
        if isinstance(found, ast.Constant):
            return found.value
        if (
            isinstance(found, ast.UnaryOp)
            and isinstance(found.op, ast.USub)
            and isinstance(found.operand, ast.Constant)
        ):
            value = found.operand.value
            return -value if isinstance(value, int | float) else ...
        return ...


_CHANGES = (
    "update",
    "pop",
    "popitem",
    "clear",
    "setdefault",
    "append",
    "extend",
    "insert",
    "remove",
    "reverse",
    "sort",
)
"""Methods that change a dict or a list."""
_PREPARE = ("prepare", "prepare_model", "setup", "setup_module")
"""Methods of frameworks that return their arguments, wrapped."""


def part_of(one: Binding) -> ast.expr | None:
    """Return the expression that a name gets, also if several names are assigned at once; None if it is unknown."""
    value = one.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _PREPARE:
        place = one.index or ((0,) if len(value.args) == 1 else ())
        if len(place) == 1 and 0 <= place[0] < len(value.args) and not isinstance(value.args[place[0]], ast.Starred):
            return value.args[place[0]]
    for position in one.index:
        if not isinstance(value, ast.Tuple | ast.List) or not 0 <= position < len(value.elts):
            return None
        value = value.elts[position]
    return value


def argument(call: Call, function: Scope, parameter: str) -> ast.expr | None:
    """Return the argument that a call passes for a parameter of a function of the same file; None if unknown."""
    names = list(function.parameters)
    if names and function.parent is not None and function.parent.kind == "class" and names[0] in ("self", "cls"):
        names = names[1:]
    if parameter not in names or call.unpacks:
        return None
    return call.argument(names.index(parameter), parameter)


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the texts of the names and chains of attributes in an expression."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, ast.Name | ast.Attribute) and (text := dotted(one)):
            yield text
        else:
            waiting.extend(ast.iter_child_nodes(one))


def _dominates(first: Context, then: Context) -> bool:
    """Return True if everything that runs in the second context has run through the first one before."""
    if first.deferred and not then.deferred:
        return False
    if first.guards != then.guards[: len(first.guards)]:
        return False
    return first.loop is None or (then.loop is not None and then.loop.within(first.loop))


def _exclusive(one: Context, other: Context) -> bool:
    """Return True if two contexts are different branches of one statement."""
    branches = dict(one.guards)
    return any(branches.get(node, branch) != branch for node, branch in other.guards)
