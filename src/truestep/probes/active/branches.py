"""The names that a method reads, without branches that an option of the program turns off.

    if self.conditional:                # False for this model
        x = torch.cat([x, labels], 1)

An option is a plain value in a global variable, or in an attribute of the model or its class. Reading the shape of a
tensor, as in `torch.zeros(known.shape[0], 8)`, does not read the tensor.
"""

from __future__ import annotations

import ast
import dis
import inspect
import textwrap
from collections.abc import Iterator
from types import FunctionType
from typing import Any

_PLAIN = (bool, int, str, type(None))
_FACTS = frozenset({"shape", "size", "ndim", "dim", "numel", "dtype", "device", "type"})


def reads(method: FunctionType, model: Any) -> set[str]:
    """Return the names of values that a method can read, with the options of a model as they are."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    except (OSError, SyntaxError, TypeError, ValueError):
        tree = None
    if isinstance(tree, ast.FunctionDef):
        return set(_in_block(tree.body, _Options(method, model)))
    return loads(method)


def loads(method: FunctionType) -> set[str]:
    """Return all names that a method loads, of options that are off, too."""
    found = (one.argval for one in dis.get_instructions(method) if one.opname.startswith("LOAD"))
    return {part for value in found for part in (value if isinstance(value, tuple) else (value,))}


class _Options:
    """The values that conditions of a method have before it is called.

    Args:
        method: the method.
        model: its first argument.
    """

    def __init__(self, method: FunctionType, model: Any) -> None:
        code = method.__code__
        self._own = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
        self._first = code.co_varnames[0] if code.co_argcount else ""
        self._globals = method.__globals__
        self._places = [vars(model), *(vars(one) for one in type(model).__mro__)]

    def holds(self, test: ast.expr) -> bool | None:
        """Return the truth of a condition; None if it is not one of an option alone."""
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                held = self.holds(operand)
                return None if held is None else not held
            case ast.BoolOp(op=op, values=values):
                every, found = isinstance(op, ast.And), [self.holds(value) for value in values]
                if (not every) in found:
                    return not every
                return None if None in found else every
            case ast.Compare(left=left, ops=[ast.Is() | ast.Eq() | ast.IsNot() | ast.NotEq() as op], comparators=[one]):
                known, value = self._value(left)
                if not known or not isinstance(one, ast.Constant) or type(one.value) not in _PLAIN:
                    return None
                equal = type(value) is type(one.value) and value == one.value
                return equal if isinstance(op, ast.Is | ast.Eq) else not equal
        known, value = self._value(test)
        return bool(value) if known else None

    def _value(self, node: ast.expr) -> tuple[bool, Any]:
        """Return whether an expression is an option, and its value."""
        match node:
            case ast.Name(id=name) if name not in self._own:
                places: list[Any] = [self._globals]
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._first and name != "training":
                places = self._places
            case _:
                return False, None
        for place in places:
            if name in place:
                return type(place[name]) in _PLAIN, place[name]
        return False, None


def _in_block(block: list[ast.stmt], options: _Options) -> Iterator[str]:
    """Yield the names in statements up to one that surely leaves the method."""
    for statement in block:
        yield from _names(statement, options)
        if _leaves(statement, options):
            return


def _names(node: ast.AST, options: _Options) -> Iterator[str]:
    """Yield the names in a node, without those of branches that are turned off."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            yield name
        case ast.Attribute(value=ast.Name(), attr=fact) if fact in _FACTS or fact.startswith("new_"):
            return
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name()]):
            return
        case ast.If(test=test, body=body, orelse=other):
            yield from _names(test, options)
            held = options.holds(test)
            if held is not False:
                yield from _in_block(body, options)
            if held is not True:
                yield from _in_block(other, options)
        case ast.IfExp(test=test, body=one, orelse=two):
            held = options.holds(test)
            for part in (test, *([one] if held is not False else []), *([two] if held is not True else [])):
                yield from _names(part, options)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _names(child, options)


def _leaves(statement: ast.stmt, options: _Options) -> bool:
    """Return True if a statement surely ends its method."""
    if isinstance(statement, ast.If):
        held = options.holds(statement.test)
        taken = [] if held is None else statement.body if held else statement.orelse
        return any(_leaves(one, options) for one in taken)
    return isinstance(statement, ast.Return | ast.Raise)
