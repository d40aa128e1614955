"""Functions with an argument that turns dropout on, by their source: who sets it, and who reads the result."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from truestep import source
from truestep.probes.unread.statements import scope_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_WITH_MODE = 3
_DEEP = 3
_SAMPLING = re.compile(
    r"mc|samples?|sampling|uncertain|bayes|stochastic|ensemble|generat|draw|pseudo|teacher|monte|predictive|variance"
)
_SWITCH = re.compile(r"drop|train")
_DRAWS = frozenset({"rand", "rand_like", "bernoulli", "bernoulli_"})
_LAYERS = frozenset({"matmul", "mm", "bmm", "einsum", "linear", "conv1d", "conv2d", "addmm", "baddbmm", "embedding"})
_NUMBERS = frozenset({"item", "tolist", "numpy"})
_SPREADS = frozenset({"stack", "std", "var", "backward", "grad", "std_mean", "var_mean"})
"""Uses of several results of one input, and of results that are trained on."""


@functools.lru_cache(maxsize=256)
def switch_of(code: CodeType, line: int, column: int) -> str:
    """Return the parameter of a function that a call of a dropout function passes as its mode; "" without one."""
    function = scope_of(code)
    if not isinstance(function, _FUNCTIONS):
        return ""
    for call in source.walk(function):
        if isinstance(call, ast.Call) and (call.lineno, call.col_offset) == (line, column):
            mode = _mode(call)
            return mode.id if isinstance(mode, ast.Name) and mode.id in _parameters(function) else ""
    return ""


def _mode(call: ast.Call) -> ast.expr | None:
    given = [one.value for one in call.keywords if one.arg == "training"]
    return call.args[_WITH_MODE - 1] if len(call.args) >= _WITH_MODE else given[0] if given else None


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = function.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


@functools.lru_cache(maxsize=256)
def is_always_on(path: str, name: str, parameter: str) -> bool:
    """Return True if each call of a function in its file sets a parameter to a true constant, or leaves it at one."""
    tree = source.parsed(path)
    return tree is not None and _settings(tree, name, parameter, _DEEP) == {True}


@functools.lru_cache(maxsize=256)
def masked_by(code: CodeType) -> tuple[str, ast.Call] | None:
    """Return the parameter of a function that turns a random mask of computed values on, and the draw of this mask."""
    function = scope_of(code)
    if not isinstance(function, _FUNCTIONS):
        return None
    switches = [name for name in _parameters(function) if _SWITCH.search(name.lower())]
    computed = {
        name
        for node in source.walk(function)
        if isinstance(node, ast.Assign) and _is_product(node.value)
        for target in node.targets
        for name in _names(target, ast.Store)
    }
    for node in source.walk(function) if switches else ():
        under = [node.body] if isinstance(node, ast.IfExp) else node.body if isinstance(node, ast.If) else []
        mode = _turned_on(node.test) & set(switches) if isinstance(node, ast.IfExp | ast.If) else set()
        for call in (one for part in under if mode for one in source.walk(part) if isinstance(one, ast.Call)):
            drawn = isinstance(call.func, ast.Attribute) and call.func.attr in _DRAWS
            if drawn and not computed.isdisjoint(_names(call, ast.Load)):
                return min(mode), call
    return None


def _is_product(value: ast.expr) -> bool:
    """Return True if an expression has a product of matrices, or another layer as a function."""
    for node in source.walk(value):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _LAYERS:
            return True
    return False


def _turned_on(test: ast.expr) -> set[str]:
    """Return the names that must be true, or more than 0, for a condition to hold.

    >>> sorted(_turned_on(ast.parse("train and drop > 0", mode="eval").body))
    ['drop', 'train']
    """
    match test:
        case ast.Name(id=name):
            return {name}
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
            return {name}
        case ast.BoolOp(op=ast.And(), values=values):
            return set().union(*map(_turned_on, values))
    return set()


@functools.lru_cache(maxsize=64)
def evaluations(path: str, name: str) -> tuple[tuple[str, ast.Call], ...]:
    """Return the calls of a function without gradients, with the functions of the file that make numbers of the result.

    Without any if a call draws samples on purpose.
    """
    tree, found = source.parsed(path), []
    for function in source.walk(tree) if tree is not None else ():
        calls = _calls_without_gradients(function, name) if isinstance(function, ast.FunctionDef) else []
        for call in calls:
            use = use_of(function, function.name, call.lineno)  # type: ignore[attr-defined]
            if use == "sampled":
                return ()
            if use == "number":
                found.append((function.name, call))  # type: ignore[attr-defined]
    return tuple(found)


def _calls_without_gradients(function: ast.FunctionDef, name: str) -> list[ast.Call]:
    decorated = any(_turns_gradients_off(one) for one in function.decorator_list)
    blocks: list[ast.AST] = [function] if decorated else [
        node
        for node in source.walk(function)
        if isinstance(node, ast.With) and any(_turns_gradients_off(one.context_expr) for one in node.items)
    ]  # fmt: skip
    calls = [one for block in blocks for one in source.walk(block) if isinstance(one, ast.Call)]
    return [one for one in calls if isinstance(one.func, ast.Name) and one.func.id == name]


def _turns_gradients_off(node: ast.expr) -> bool:
    return ast.unparse(node).removesuffix("()").rpartition(".")[2] in ("no_grad", "inference_mode")


@functools.lru_cache(maxsize=64)
def numbers_from(code: CodeType, name: str) -> tuple[tuple[str, ...], ...]:
    """Return the variables of a function that only a call of another one stores, for each statement with this call."""
    scope = scope_of(code)
    stores = [one.id for one in source.walk(scope or ast.Module([], [])) if _is_stored(one)]  # type: ignore[attr-defined]
    found = []
    for node in _simple(scope) if scope is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and len(node.targets) == 1:
            names = [one for one in _names(node.targets[0], ast.Store) if stores.count(one) == 1]
            if names and isinstance(node.value.func, ast.Name) and node.value.func.id == name:
                found.append(tuple(names))
    return tuple(found)


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


@functools.lru_cache(maxsize=256)
def is_imported(path: str, by: str) -> bool:
    """Return True if a file imports another one, by the name of its module."""
    tree, name = source.parsed(by), Path(path).stem
    for node in source.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import | ast.ImportFrom):
            named = [*(one.name for one in node.names), getattr(node, "module", None) or ""]
            if any(name in one.split(".") for one in named):
                return True
    return False


def _settings(tree: ast.AST, name: str, parameter: str, depth: int) -> set[bool | None]:
    """Return the truth of the values that calls give to a parameter; with None if one is not known."""
    functions = [node for node in source.walk(tree) if isinstance(node, _FUNCTIONS) and node.name == name]
    called = {call.func: call for call in source.walk(tree) if isinstance(call, ast.Call)}
    if len(functions) != 1 or not depth:
        return {None}
    found = set[bool | None]()
    for node in source.walk(tree):
        if name in (getattr(node, "id", ""), getattr(node, "attr", "")):
            call = called.get(node) if isinstance(node, ast.Name) else None
            found |= {None} if call is None else _setting(tree, call, functions[0], parameter, depth)
    return found


def _setting(
    tree: ast.AST, call: ast.Call, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str, depth: int
) -> set[bool | None]:
    names = _parameters(function)
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return {None}
    given = dict(zip(names, call.args, strict=False)) | {one.arg: one.value for one in call.keywords if one.arg}
    value = given.get(parameter) or _default(function, parameter)
    if isinstance(value, ast.Constant):
        return {bool(value.value)}
    if isinstance(value, ast.Name):
        around = [one for one in source.walk(tree) if isinstance(one, _FUNCTIONS) and call in source.walk(one)]
        inner = around[-1] if around else None
        stored = [one for one in source.walk(inner or tree) if isinstance(one, ast.Name) and one.id == value.id]
        passed = inner is not None and value.id in _parameters(inner)
        if inner is not None and passed and all(isinstance(one.ctx, ast.Load) for one in stored):
            return _settings(tree, inner.name, value.id, depth - 1)
        constants = [
            node.value
            for node in source.walk(tree)
            if isinstance(node, ast.Assign) and [ast.unparse(one) for one in node.targets] == [value.id]
        ]
        whole = [one for one in source.walk(tree) if _is_stored(one) and getattr(one, "id", "") == value.id]
        if len(whole) == len(constants) == 1 and isinstance(constants[0], ast.Constant):
            return {bool(constants[0].value)}
    return {None}


def _default(function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str) -> ast.expr | None:
    given = function.args
    plain = [one.arg for one in (*given.posonlyargs, *given.args)]
    defaults = dict(zip(reversed(plain), reversed(given.defaults), strict=False))
    defaults |= {one.arg: value for one, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
    return defaults.get(parameter)


@functools.lru_cache(maxsize=256)
def measures(code: CodeType, line: int) -> str:
    """Return the use that a function makes of the result of a statement.

    Returns:
        "number" if it makes numbers of it or compares it; "returned" if its caller gets it; "sampled" for one of
        several draws for one input; "" for another use.
    """
    scope = scope_of(code)
    return "sampled" if scope is None else use_of(scope, code.co_name, line)


def use_of(scope: ast.AST, name: str, line: int) -> str:
    """Return the same for the function or file of a scope."""
    if _SAMPLING.search(name.lower()):
        return "sampled"
    if any(_draws_again(node, line) for node in source.walk(scope)):
        return "sampled"
    simple = [node for node in _simple(scope) if (node.end_lineno or 0) >= line]
    begun = [node for node in simple if node.lineno <= line]
    if not begun:
        return ""
    known, found = set[str](), ""
    for node in [begun[0], *(one for one in simple if one.lineno > line)]:
        if node is not begun[0] and known.isdisjoint(_names(node, ast.Load)):
            continue
        if _SPREADS & _called(node, known, whole=node is begun[0]):
            return "sampled"
        if _is_number(node, known, whole=node is begun[0]):
            found = "number"
        elif isinstance(node, ast.Return) and not found:
            found = "returned"
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            known |= {name for target in targets for name in _names(target)}
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            held = node.value.func
            known |= _names(held) if isinstance(held, ast.Attribute) else set()
    return found


def _simple(scope: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements without others in them, and the tests of conditions, in their order."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.stmt) and not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            if not hasattr(child, "body"):
                yield child
            elif isinstance(child, ast.If):
                yield ast.copy_location(ast.Expr(child.test), child.test)
            yield from _simple(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from _simple(child)


def _draws_again(node: ast.AST, line: int) -> bool:
    """Return True for a loop around a line that does not use its variable, and does not train."""
    if isinstance(node, ast.For) and node.body[0].lineno <= line <= (node.end_lineno or 0):
        calls = {one.attr for one in source.walk(node) if isinstance(one, ast.Attribute)}
        used = set().union(*(_names(one, ast.Load) for one in node.body))
        return _names(node.target).isdisjoint(used) and calls.isdisjoint({"backward", "grad"})
    if isinstance(node, ast.ListComp | ast.GeneratorExp) and node.lineno <= line <= (node.end_lineno or 0):
        return all(_names(one.target).isdisjoint(_names(node.elt)) for one in node.generators)
    return False


def _names(node: ast.AST, how: type[ast.expr_context] = ast.expr_context) -> set[str]:
    return {one.id for one in source.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, how)}


def _called(node: ast.AST, known: set[str], *, whole: bool) -> set[str]:
    """Return the names of the methods and functions that get followed values."""
    calls = [one for one in source.walk(node) if isinstance(one, ast.Call)]
    calls = [one for one in calls if whole or not known.isdisjoint(_names(one))]
    return {str(getattr(one.func, "attr", getattr(one.func, "id", ""))) for one in calls}


def _is_number(node: ast.AST, known: set[str], *, whole: bool) -> bool:
    """Return True if a statement reads followed values as numbers, or compares them."""
    compared = (one for one in source.walk(node) if isinstance(one, ast.Compare))
    if any(whole or not known.isdisjoint(_names(one)) for one in compared):
        return True
    return not _NUMBERS.union(("float", "int")).isdisjoint(_called(node, known, whole=whole))
