"""Use of selections in the source of a program: the variable that they select from, and selections without another."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from types import FrameType, FunctionType, MethodType

from truestep import source
from truestep.probes.context.local_variables import variables
from truestep.probes.variables.origins import resolved, root_of, scope_of, stores_of
from truestep.seams.code.functions import code_of

_TAKING_OUT = frozenset(
    {"delete", "difference", "in1d", "isin", "logical_and", "logical_xor", "masked_fill", "setdiff1d", "setxor1d"}
)
_COUNTING = frozenset(
    {"argwhere", "bool", "flatnonzero", "int", "len", "list", "nonzero", "print", "set", "sorted", "sum", "where"}
)
_OPERATORS = (ast.BitAnd, ast.BitXor, ast.Sub, ast.Gt, ast.Lt, ast.Mult)


def selected_from(frame: FrameType, written: str) -> set[tuple[str, ...]]:
    """Return the source of the variable that an expression selects from, in the function of a frame.

    Two selections from ``x[...]``, or in calls with otherwise equal arguments, are of the same rows, unless a variable
    around them is stored several times.
    """
    found: set[tuple[str, ...]] = set()
    for node in scope_of(frame.f_code):
        if isinstance(node, ast.Subscript) and ast.unparse(_first(node.slice)) == written:
            around: list[ast.expr] = [node.value]
        elif isinstance(node, ast.Call) and any(ast.unparse(one) == written for one in node.args):
            around = [node.func, *(one for one in node.args if ast.unparse(one) != written)]
            if len(around) == 1 and not _is_own(frame, node.func):
                continue
        else:
            continue
        texts = tuple(map(ast.unparse, around))
        if all(len(stores_of(frame.f_code, root_of(text))) < 2 for text in texts):
            found.add(texts)
    return found


def _is_own(frame: FrameType, called: ast.expr) -> bool:
    """Return True for a function in the file of a frame, which selects from the same rows in each call."""
    function = resolved(called, frame.f_globals | variables(frame))
    function = function.__func__ if isinstance(function, MethodType) else function
    return isinstance(function, FunctionType) and code_of(function).co_filename == frame.f_code.co_filename


def is_used(paths: Iterable[str], written: str) -> bool:
    """Return True if a selection is the index of an expression, or an argument of a function that does not count it."""
    return any(leaf_of(written) in _used(path) for path in paths)


def are_of_equal_tables(frame: FrameType, one: set[str], other: set[str]) -> bool:
    """Return True if two selections select from the same variables, in the function of a frame or else in its file.

    Their tables are variables with an index, and the other arguments of calls, constants among them; of a call without
    any, its function; and the variable of a loop over several selections.

    Args:
        frame: the frame.
        one: the names of a selection.
        other: the names of the other one.
    """
    for pairs in (_tables_in(scope_of(frame.f_code)), _tables(frame.f_code.co_filename)):
        first, second = ({table for leaf, table in pairs if leaf in set(map(leaf_of, each))} for each in (one, other))
        if first and second:
            return first == second
    return False


def are_taken_apart(paths: Iterable[str], one: str, other: str) -> bool:
    """Return True if a statement has both selections in an operation that can take one out of the other."""
    both = {leaf_of(one), leaf_of(other)}
    return any(both <= found for path in paths for found in _operations(path))


@functools.lru_cache(maxsize=64)
def _used(path: str) -> set[str]:
    found: set[str] = set()
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found.add(_leaf(_first(node.slice)))
        elif isinstance(node, ast.Call) and _called(node) not in _COUNTING | _TAKING_OUT:
            found |= {_leaf(one) for one in (*node.args, *(one.value for one in node.keywords))}
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
            found |= {_leaf(one) for item in node.iter.elts for one in (item, *getattr(item, "elts", ()))}
    return found


@functools.lru_cache(maxsize=64)
def _tables(path: str) -> list[tuple[str, str]]:
    return _tables_in(source.walk(source.parsed(path) or ast.Module([], [])))


def _tables_in(nodes: Iterable[ast.AST]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for node in nodes:
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            found.append((_leaf(_first(node.slice)), ast.unparse(node.value)))
        elif isinstance(node, ast.Call) and _called(node) not in _COUNTING | _TAKING_OUT:
            given = [*node.args, *(one.value for one in node.keywords)]
            for one in given:
                others = [ast.unparse(other) for other in given if other is not one] or [ast.unparse(node.func)]
                found += [(_leaf(one), other) for other in others]
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple | ast.List):
            parts = [one for item in node.iter.elts for one in (item, *getattr(item, "elts", ()))]
            found += [(_leaf(one), ast.unparse(node.target)) for one in parts]
    return found


@functools.lru_cache(maxsize=64)
def _operations(path: str) -> list[set[str]]:
    """Return the names in each operation of a file that can take rows out of a selection."""
    found = []
    for node in source.walk(source.parsed(path) or ast.Module([], [])):
        operation = isinstance(node, ast.BinOp | ast.Compare) and any(
            isinstance(one, _OPERATORS) for one in source.walk(node)
        )
        if operation or (isinstance(node, ast.Call) and _called(node) in _TAKING_OUT):
            found.append(set(_leaves(node)))
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
            found.append({*_leaves(target.slice), *_leaves(target.value)})
        elif isinstance(node, ast.ListComp | ast.SetComp) and any(one.ifs for one in node.generators):
            found.append(set(_leaves(node)))
    return found


def leaf_of(written: str) -> str:
    """Return the last name of an expression.

    >>> leaf_of("data.val_mask"), leaf_of("splits['val']"), leaf_of("masks[2]"), leaf_of("val")
    ('val_mask', 'val', 'masks[2]', 'val')
    """
    return _leaf(ast.parse(written, mode="eval").body)


def _leaf(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else ast.unparse(node)
    return ""


def _leaves(node: ast.AST) -> Iterator[str]:
    for one in source.walk(node):
        if isinstance(one, ast.Name | ast.Attribute | ast.Subscript):
            yield _leaf(one)


def _first(index: ast.expr) -> ast.expr:
    return index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
