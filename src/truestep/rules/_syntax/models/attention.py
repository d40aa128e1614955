"""Softmaxes and norms of a dimension, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from truestep.events import Site
from truestep.rules._formulas import program_of, site_of
from truestep.syntax import Call, Program, Suspicion

_NAMES = ("softmax", "log_softmax", "Softmax", "LogSoftmax")
_MOST_BETWEEN = 4
_METHODS = ("softmax", "log_softmax")


def softmaxes_over(files: Iterable[str], dim: int) -> Iterator[Site]:
    """Yield the lines of files with a softmax over a dimension, written as a number."""
    for path in files:
        program = program_of(path)
        if program is None:
            continue
        for node in ast.walk(program.tree):
            if isinstance(node, ast.Call) and _dimension(node) == dim:
                yield site_of(path, program.tree, node)


def norms_over(files: Iterable[str], dim: int, rank: int) -> Iterator[Site]:
    """Yield the lines of files with a ``normalize`` over a dimension of tensors, written as a number or by default."""
    for path in files:
        program = program_of(path)
        if program is None:
            continue
        for node in ast.walk(program.tree):
            if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] != "normalize":
                continue
            given = [one.value for one in node.keywords if one.arg == "dim"] + node.args[2:3]
            try:
                value = ast.literal_eval(given[0]) if given else 1
            except ValueError:
                continue
            if type(value) is int and value % rank == dim:
                yield site_of(path, program.tree, node)


def _dimension(call: ast.Call) -> int | None:
    """Return the dimension that a softmax gets; None if it is not a number, and for other calls."""
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    if name not in _NAMES:
        return None
    given = [one.value for one in call.keywords if one.arg == "dim"]
    at = int(name in _METHODS)
    if name in _METHODS and isinstance(function, ast.Attribute) and not _is_module(function.value):
        at = 0  # a method of the scores
    given += call.args[at : at + 1]
    try:
        value = ast.literal_eval(given[0]) if given else None
    except ValueError:
        return None
    return value if type(value) is int else None


def _is_module(node: ast.expr) -> bool:
    return ast.unparse(node) in ("F", "torch", "nn.functional", "functional", "torch.nn.functional", "tf")


def softmaxes_over_batches(program: Program) -> Iterator[Suspicion]:
    """Yield softmaxes of scores between two tensors, over a dimension that their product with the values keeps."""
    for call in program.calls:
        scores, given, place = _softmax_of(call, program)
        if scores is None or place is None:
            continue
        dim = program.values.constant(given, place.context, place.order)
        if type(dim) is not int or dim not in _kept(scores, call, program) or not _weighs(call.node, dim, program):
            continue
        yield Suspicion(
            place.node,
            "the softmax of attention runs over samples or heads, and the values are summed over the keys",
            f"runs over dimension {dim}",
            "let both run over the keys: `(q @ k.transpose(-1, -2)).softmax(dim=-1) @ v`",
        )


def _softmax_of(call: Call, program: Program) -> tuple[ast.expr | None, ast.expr | None, Call | None]:
    """Return the scores and the dimension of a softmax, and the call that names the dimension; None for other calls."""
    if call.name in ("torch.softmax", "torch.nn.functional.softmax") and call.node.args:
        return call.node.args[0], call.argument(1, "dim"), call
    function = call.node.func
    made = program.call_at.get(program.values.origin(function, call.context, call.order)[0])
    if made is not None and made.name == "torch.nn.Softmax" and call.node.args:
        return call.node.args[0], made.argument(0, "dim"), made
    if call.method == "softmax" and isinstance(function, ast.Attribute) and not call.name.startswith("torch."):
        return function.value, call.argument(0, "dim"), call
    return None, None, None


def _kept(scores: ast.expr, call: Call, program: Program) -> set[int]:
    """Return the first dimensions of a product of two tensors: it multiplies the matrices of each place in them."""
    context, order = call.context, call.order
    for _ in range(_MOST_BETWEEN):
        scores, context, order = program.values.origin(scores, context, order)
        if isinstance(scores, ast.BinOp) and isinstance(scores.op, ast.Mult | ast.Div | ast.Add):
            scores = scores.left
        elif isinstance(scores, ast.Call) and ast.unparse(scores.func).endswith(".masked_fill"):
            assert isinstance(scores.func, ast.Attribute)
            scores = scores.func.value
        else:
            break
    if isinstance(scores, ast.Call):
        letters = _letters(scores)
        if letters is None:
            return set()
        first, second, result = letters
        return {at for at, letter in enumerate(result) if letter in first and letter in second}
    if not isinstance(scores, ast.BinOp) or not isinstance(scores.op, ast.MatMult):
        return set()
    turned = program.values.origin(scores.right, context, order)[0]
    if not isinstance(turned, ast.Call) or not ast.unparse(turned.func).endswith(".transpose"):
        return set()
    dims = [one.value for one in turned.args if isinstance(one, ast.Constant) and type(one.value) is int]
    return set(range(min(dims))) if len(dims) == 2 and max(dims) == min(dims) + 1 else set()


def _letters(call: ast.Call) -> tuple[str, str, str] | None:
    """Return the letters of both factors and of the result of an ``einsum``; None for other calls."""
    text = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if not ast.unparse(call.func).endswith("einsum") or type(text) is not str or "." in text:
        return None
    factors, _, result = text.replace(" ", "").partition("->")
    first, comma, second = factors.partition(",")
    return (first, second, result) if comma and result and "," not in second else None


def _weighs(softmax: ast.Call, dim: int, program: Program) -> bool:
    """Return True if the result of a softmax, or of a dropout of it, is the first factor of a product that keeps it."""
    functions = [one for one in ast.walk(program.tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [one for one in functions if one.lineno <= softmax.lineno <= (one.end_lineno or one.lineno)]
    nodes = list(ast.walk(max(around, key=lambda one: one.lineno) if around else program.tree))
    names = {
        target.id
        for one in nodes
        if isinstance(one, ast.Assign) and _is_of(one.value, softmax, set())
        for target in one.targets
        if isinstance(target, ast.Name)
    }
    for one in nodes:
        if isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult) and _is_of(one.left, softmax, names):
            return True
        letters = _letters(one) if isinstance(one, ast.Call) and len(one.args) == 3 else None
        if letters is not None and isinstance(one, ast.Call) and _is_of(one.args[1], softmax, names):
            first, second, result = letters
            return dim < len(first) and first[dim] in second and first[dim] in result
    return False


def _is_of(node: ast.expr, softmax: ast.Call, names: set[str]) -> bool:
    """Return True for a softmax, one of its names, or a dropout of one of these."""
    if isinstance(node, ast.Call) and node is not softmax and "dropout" in ast.unparse(node.func).lower() and node.args:
        node = node.args[0]
    return node is softmax or (isinstance(node, ast.Name) and node.id in names)
