"""Masks of scores before a softmax, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep.findings import Confidence
from truestep.syntax import Call, Context, Program, Suspicion, dotted, names_in

_FUNCTIONS = tuple(f"torch.{where}{name}" for where in ("", "nn.functional.") for name in ("softmax", "log_softmax"))
_CLASSES = ("torch.nn.Softmax", "torch.nn.LogSoftmax")
_METHODS = ("softmax", "log_softmax")
_OF_A_MASK = re.compile(r"mask|tri[lu]\b|pad|causal|valid|\badj|visib|legal|allowed|length|future")
_OF_VALUES = re.compile(r"isnan|isinf|isfinite|\ball\(|\bany\(|rand|drop|bernoulli|\beye\b|topk|thresh|inf\b|finfo|1e")
"""Conditions on the scores themselves, on whole rows or single positions, and random ones."""
_ROWS = re.compile(r"unsqueeze\((?:dim=)?-1\)\)?$|None\]\)?$")
"""Ends of masks that cover whole rows of the last dimension."""
_LOW = re.compile(r"^-|-inf|finfo")
_SAME = frozenset({"float", "to", "contiguous", "clone", "half", "double", "type_as"})
_DEEPEST = 4
_LITTLE = 1e-3


class _Filled(NamedTuple):
    """An operation that sets masked scores to zero."""

    node: ast.expr
    mask: ast.expr
    text: str
    confidence: Confidence = Confidence.HIGH
    value: str = "0"


def masked_scores_in_softmax(program: Program) -> Iterator[Suspicion]:
    """Yield masks that set scores to zero right before a softmax."""
    if "softmax" not in program.text.lower():
        return
    for call, scores in _softmaxes(program):
        found = _filled(scores, call.context, call.order, program)
        if found is None or _is_used_again(found.mask, call, program):
            continue
        yield Suspicion(
            found.node,
            f"{found.text} sets masked scores to {found.value}, and the softmax gives them a weight: "
            f"exp({found.value}) is 1",
            f"sets masked scores to {found.value}",
            'set them to minus infinity: `scores.masked_fill(mask, float("-inf"))`',
            ((call.node, "the softmax of these scores"),),
            found.confidence,
        )


def masks_of_rows(program: Program) -> Iterator[ast.Call]:
    """Yield the calls that fill whole rows of the last dimension with a value far below others."""
    for call in program.method("masked_fill", "masked_fill_"):
        given, value = call.argument(0, "mask"), call.argument(1, "value")
        low = value is not None and _LOW.search(ast.unparse(value))
        if given is not None and low and _ROWS.search(ast.unparse(given)):
            yield call.node


def _softmaxes(program: Program) -> Iterator[tuple[Call, ast.expr]]:
    """Yield the calls of a softmax, each with the expression of its scores."""
    for call in program.named(*_FUNCTIONS):
        value = call.argument(0, "input")
        if value is not None:
            yield call, value
    for call in program.method(*_METHODS):
        if not call.name and isinstance(call.node.func, ast.Attribute):
            yield call, call.node.func.value
    made = {call.node for call in program.named(*_CLASSES)}
    for call, function in program.of_objects if made else ():
        if function in made and call.node not in made and not isinstance(call.node.args[0], ast.Starred):
            yield call, call.node.args[0]


def _filled(node: ast.expr, context: Context, order: int, program: Program, depth: int = 0) -> _Filled | None:
    """Return the operation that set masked scores to zero; None for other scores."""
    if depth > _DEEPEST:
        return None
    if dotted(node):
        bindings = program.values.reaching(dotted(node), context, order) or []
        made = [
            _filled(one.value, one.context, one.order, program, depth + 1)
            for one in bindings
            if one.value is not None and one.how == "=" and not one.index
        ]
        return next((one for one in reversed(made) if one is not None), None)
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Mult) and (found := _product(node, context, order, program)) is not None:
            return found
        scaled = isinstance(node.op, ast.Div | ast.Mult)
        return _filled(node.left, context, order, program, depth + 1) if scaled else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    name, args = node.func.attr, node.args
    owner = node.func.value
    if name in ("masked_fill", "masked_fill_") and len(args) == 2 and _is_zero(args[1]):
        found = _checked(node, args[0], owner, "`masked_fill`", context, order, program)
    elif name == "where" and len(args) == 3 and _is_zero(args[2]):
        found = _checked(node, args[0], args[1], "`torch.where`", context, order, program)
    elif name == "where" and len(args) == 2 and _is_zero(args[1]):
        found = _checked(node, args[0], owner, "`where`", context, order, program)
    else:
        return _filled(owner, context, order, program, depth + 1) if name in _SAME else None
    value = args[-1].value if isinstance(args[-1], ast.Constant) else 0
    return None if found is None else found._replace(value=f"{value:g}" if isinstance(value, float) else "0")


def _checked(
    node: ast.expr, mask: ast.expr, scores: ast.expr, text: str, context: Context, order: int, program: Program
) -> _Filled | None:
    """Return a fill if its condition is that of a mask."""
    made = program.values.origin(mask, context, order)[0]
    texts = f"{ast.unparse(mask)} {ast.unparse(made)}"
    if _OF_VALUES.search(texts) or _ROWS.search(ast.unparse(mask)) or _is_masked_before(scores):
        return None
    compared = next((one for one in (mask, made) if isinstance(one, ast.Compare)), None)
    apart = compared is not None and set(names_in(compared)).isdisjoint(names_in(scores))
    equal = compared is not None and isinstance(compared.ops[0], ast.Eq | ast.NotEq)
    of_a_mask = _OF_A_MASK.search(texts.lower()) is not None
    return _Filled(node, mask, text) if of_a_mask or (apart and equal) else None


def _product(node: ast.BinOp, context: Context, order: int, program: Program) -> _Filled | None:
    """Return a product of scores and a mask."""
    for factor, scores in ((node.right, node.left), (node.left, node.right)):
        name = dotted(factor).rpartition(".")[2].lower()
        made = ast.unparse(program.values.origin(factor, context, order)[0])
        other = _OF_VALUES.search(made) or _ROWS.search(made) or _is_masked_before(scores) or _is_weight(scores)
        if re.search(r"mask|tril|\badj", name) and not other:
            return _Filled(node, factor, "a product with the mask", Confidence.MEDIUM)
    return None


def _is_masked_before(scores: ast.expr) -> bool:
    """Return True if scores are sums, such as those with a mask of minus infinities, or filled before."""
    sums = isinstance(scores, ast.BinOp) and isinstance(scores.op, ast.Add | ast.Sub)
    return sums or "masked_fill" in ast.unparse(scores)


def _is_weight(scores: ast.expr) -> bool:
    """Return True if scores are a weight of the model, which a mask prunes."""
    return dotted(scores).rpartition(".")[2] in ("weight", "weight_orig")


def _is_used_again(mask: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a mask is used behind the softmax, as by a product with the weights."""
    loads = call.context.scope.loads
    return any(order >= call.order for name in names_in(mask) for order, _ in loads.get(name, ()))


def _is_zero(node: ast.expr) -> bool:
    """Return True for zero, and for a number as small, as of 1e-9 in place of -1e9."""
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] == "zeros_like"
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _LITTLE
