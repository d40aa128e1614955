"""Perplexities that are a power of two of a loss in nats, and overlaps of boxes without a limit, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.rules._syntax.data.roles import Figure, figures, texts_in
from truestep.syntax import Context, Program, Suspicion, dotted, names_in

_PERPLEXITY = re.compile(r"(?:^|_)(?:ppl|perplexity)(?:_|$)")
_WORD = re.compile(r"(?<![a-z])(?:ppl|perplexity)(?![a-z])")
"""A file without this has no perplexity."""
_BITS = re.compile(
    r"log_?2|log\(2|(?<!self\.)(?<![a-z])ln_?2(?!\d)|0\.693|1\.442|tensor\(2(?:\.0*)?[,)]"
    r"|(?<![a-z])(?:bits?|bp[bcd])(?![a-z])|base=2",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"(?:^|_)(?:n|num\w*|counts?|counted|total\w*|seen|len\w*|size|shape|numel|sum)(?:_|$)")
_ELEMENTS = re.compile(r"(?:^|_)(?:tokens?|words?|chars?|samples?|batch\w*|steps?|iters?|loader)(?:_|$)")
_LOSS = re.compile(r"loss|nll|entropy|(?:^|_)ce(?:_|$)")
_DEEPEST = 3
_SMALLER = frozenset({"min", "minimum", "fmin"})
_LARGER = frozenset({"max", "maximum", "fmax"})


def powers_of_two(program: Program) -> Iterator[Suspicion]:
    """Yield perplexities that are a power of two of a loss, in a file that measures no loss in bits."""
    if not _WORD.search(program.text.lower()) or _BITS.search(program.text):
        return
    for one in figures(program, _PERPLEXITY):
        value = program.values.origin(one.value, one.context, one.order)[0]
        exponent = _exponent_of_two(value, program)
        if exponent is None or _is_scaled(exponent, one, program, 0):
            continue
        if any(_LOSS.search(name.lower()) for name in texts_in(exponent)):
            yield Suspicion(
                value,
                "the perplexity is a power of two of a loss in nats: it is too small",
                "is 2 to the power of the loss",
                f"take the exponential: `math.exp({ast.unparse(exponent)})`",
            )


def _exponent_of_two(node: ast.expr, program: Program) -> ast.expr | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return node.right if isinstance(node.left, ast.Constant) and node.left.value == 2 else None
    call = program.call_at.get(node)
    if call is None or not call.node.args:
        return None
    if call.method == "exp2":
        return call.node.args[0]
    two = call.node.args[0]
    if call.method in ("pow", "power") and len(call.node.args) == 2 and isinstance(two, ast.Constant):
        return call.node.args[1] if two.value == 2 else None
    return None


def _is_scaled(node: ast.expr, one: Figure, program: Program, depth: int) -> bool:
    """Return True if an exponent, or the value of a name in it, is divided or multiplied by other than a number."""
    for part in ast.walk(node):
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div | ast.Mult):
            sides = [part.right] if isinstance(part.op, ast.Div) else [part.left, part.right]
            if not any(_is_number_of(side) for side in sides):
                return True
        if dotted(part) and depth < _DEEPEST:
            made = program.values.origin(part, one.context, one.order)[0]  # type: ignore[arg-type]
            if made is not part and _is_scaled(made, one, program, depth + 1):
                return True
    return False


def _is_number_of(node: ast.expr) -> bool:
    """Return True for a number of elements, which sums are divided by."""
    words = {part.lower() for name in names_in(node) for part in name.split(".")}
    words |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return any(_NUMBERS.search(word) or _ELEMENTS.search(word) for word in words) and "log" not in words


def unlimited_overlaps(program: Program) -> Iterator[Suspicion]:
    """Yield areas of intersections that are positive for boxes that do not meet: both sides are negative then."""
    for scope in program.functions():
        bindings = [one for ones in scope.bindings.values() for one in ones if one.value is not None]
        compared = {name for node in ast.walk(scope.node) if isinstance(node, ast.Compare) for name in names_in(node)}
        for one in bindings:
            node = one.value
            factors = _factors(node) if node is not None and one.how == "=" and not one.index else []
            sides = [_side(part, one.context, one.order, program) for part in factors]
            used = set().union(*(side or set() for side in sides)) | {one.key}
            set_again = any(each is not one and each.key in (one.key, f"{one.key}[]") for each in bindings)
            if node is None or not sides or None in sides or used & compared or set_again:
                continue
            yield Suspicion(
                node,
                f"`{one.key}` is positive for boxes that do not meet: both of its factors are negative",
                "has no meaning where a factor is below 0",
                "limit both sides to 0 first, as by `.clamp(min=0)`",
            )


def _factors(node: ast.expr) -> list[ast.expr]:
    """Return the factors of a product of two sides, or the tensor that a call multiplies along a dimension."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [part.value if isinstance(part, ast.Subscript) else part for part in (node.left, node.right)]
    product = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "prod"
    if product and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [node.args[0] if dotted(node.func.value) == "torch" and node.args else node.func.value]
    return []


def _side(node: ast.expr, context: Context, order: int, program: Program, depth: int = 0) -> set[str] | None:
    """Return the names that a side of an intersection is computed from; None for anything else."""
    found, where, at = program.values.origin(node, context, order)
    if isinstance(found, ast.BinOp) and isinstance(found.op, ast.Add) and isinstance(found.right, ast.Constant):
        return _side(found.left, where, at, program, depth + 1) if depth < _DEEPEST else None  # pixels are counted
    if not isinstance(found, ast.BinOp) or not isinstance(found.op, ast.Sub):
        return None
    ends = [program.values.origin(part, where, at)[0] for part in (found.left, found.right)]
    if not _is_call_of(ends[0], _SMALLER) or not _is_call_of(ends[1], _LARGER):
        return None
    return set(names_in(found)) | set(names_in(node))


def _is_call_of(node: ast.expr, names: frozenset[str]) -> bool:
    """Return True for the smaller or the larger of two values."""
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func).rpartition(".")[2] or getattr(node.func, "attr", "")
    values = len(node.args) + (isinstance(node.func, ast.Attribute) and len(node.args) == 1)
    constants = any(isinstance(each, ast.Constant) for each in node.args)
    return name in names and values == 2 and not node.keywords and not constants
