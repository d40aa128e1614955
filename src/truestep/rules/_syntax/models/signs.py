"""Losses with the wrong sign: hinges of positive and negative pairs, and likelihoods that are made smaller."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep.findings import Confidence
from truestep.rules._syntax.models.losses import loss_calls
from truestep.syntax import Program, Suspicion, dotted
from truestep.syntax.places import Context

_WORD = re.compile(r"[a-z]+|[0-9]+")
_POSITIVE, _NEGATIVE = frozenset({"pos", "positive", "positives"}), frozenset({"neg", "negative", "negatives"})
_PAIRS = {"ap": "pos", "an": "neg"}
"""Pairs of an anchor in names of several words, such as ``dist_ap``."""
_KINDS = {
    "sim": "similarity", "sims": "similarity", "similarity": "similarity", "cos": "similarity", "cosine": "similarity",
    "dist": "distance", "dists": "distance", "distance": "distance", "distances": "distance",
}  # fmt: skip
_SIMILAR = frozenset({"cosine_similarity", "CosineSimilarity", "dot", "bmm", "mm", "matmul", "einsum"})
_APART = frozenset({"pairwise_distance", "PairwiseDistance", "cdist", "norm", "vector_norm"})
_CUTS = frozenset({"relu", "relu_", "ReLU"})
_LIMITS = frozenset({"clamp", "clamp_", "clamp_min", "clip"})
_LOSSES = (
    "torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss", "torch.nn.functional.mse_loss",
    "torch.nn.MSELoss", "torch.nn.functional.binary_cross_entropy_with_logits", "torch.nn.BCEWithLogitsLoss",
)  # fmt: skip
_OPPOSED = re.compile(
    r"attack|advers|perturb|fgsm|pgd|saliency|requires_grad|unlearn|forget|revers|maximize|discr|critic|autograd|\.grad\b|worst|ascent"
)
"""Words of programs that make an error larger on purpose."""
_DEEPEST = 4


class _Term(NamedTuple):
    sign: int
    node: ast.expr


def exchanged_hinges(program: Program) -> Iterator[Suspicion]:
    """Yield hinges that push positive pairs apart, and pull negative ones together."""
    text = program.text.lower()
    if "pos" not in text or "neg" not in text:
        return
    for call in program.calls:
        cut = _cut(call.node)
        if cut is None:
            continue
        roles = {role: term for term in _terms(cut) if (role := _role(term.node))}
        if roles.keys() != {"positive", "negative"} or roles["positive"].sign == roles["negative"].sign:
            continue
        kinds = {_kind(term.node, call.context, call.order, program) for term in roles.values()}
        closer = {"similarity": 1, "distance": -1}.get(kinds.pop() or "", 0) if len(kinds) == 1 else 0
        if closer and roles["positive"].sign == closer:
            what = "similarity" if closer > 0 else "distance"
            less, more = ("smaller", "larger") if closer > 0 else ("larger", "smaller")
            yield Suspicion(
                call.node,
                f"the hinge makes the {what} of positive pairs {less}, and that of negative pairs {more}",
                "the two are exchanged",
                f"exchange `{ast.unparse(roles['positive'].node)}` and `{ast.unparse(roles['negative'].node)}`",
                (),
                Confidence.MEDIUM,
            )


def negated_losses(program: Program) -> Iterator[Suspicion]:
    """Yield the only backward pass of a file if it starts from the negative of a loss function."""
    passes = program.method("backward")
    if len(passes) != 1 or _OPPOSED.search(program.text.lower()):
        return
    (call,) = passes
    node: ast.expr = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node
    node = program.values.origin(node, call.context, call.order)[0]
    if not isinstance(node, ast.UnaryOp) or not isinstance(node.op, ast.USub):
        return
    losses = {one.node for one, _ in loss_calls(program, *_LOSSES)}
    of = node.operand
    while isinstance(of, ast.Call) and isinstance(of.func, ast.Attribute) and of.func.attr in ("mean", "sum"):
        of = of.func.value
    if of in losses:
        yield Suspicion(
            call.node,
            "the negative of a loss function is differentiated: it is made larger",
            "each step makes the error larger",
            "differentiate the loss, and not its negative",
            ((node, "the negative"),),
            Confidence.MEDIUM,
        )


def minimised_likelihoods(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes from a mean or a sum of log-probabilities of values that nothing samples."""
    text = program.text
    if "log_prob(" not in text or "sample(" in text or "maximize" in text:
        return
    for call in program.method("backward"):
        node: ast.expr = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node
        for _ in range(_DEEPEST):
            node = program.values.origin(node, call.context, call.order)[0]
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                break
            if node.func.attr == "log_prob":
                yield Suspicion(
                    call.node,
                    "a log-likelihood is made smaller",
                    "differentiates the likelihood",
                    "differentiate its negative",
                    ((node, "the logarithms of the probabilities"),),
                    Confidence.MEDIUM,
                )
            if node.func.attr not in ("mean", "sum"):
                break
            node = node.func.value


def _cut(node: ast.Call) -> ast.expr | None:
    """Return the expression that a call cuts at zero; None for another call."""
    name = dotted(node.func).rpartition(".")[2] or (node.func.attr if isinstance(node.func, ast.Attribute) else "")
    method = isinstance(node.func, ast.Attribute) and not dotted(node.func).startswith(("torch", "F.", "nn."))
    limits = [one.value for one in node.keywords if one.arg == "min"]
    if name in _CUTS and not method and len(node.args) == 1:
        return node.args[0]
    if name in (*_LIMITS, "relu") and isinstance(node.func, ast.Attribute) and method:
        zero = [*limits, *node.args[:1]]
        return node.func.value if name == "relu" or (zero and _is_zero(zero[0])) else None
    if name in (*_LIMITS, "max", "maximum") and node.args:
        zero = [*limits, *node.args[1:2]]
        return node.args[0] if zero and _is_zero(zero[0]) else None
    return None


def _is_zero(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return dotted(node.func).rpartition(".")[2] in ("zeros_like", "zeros", "tensor")
    return isinstance(node, ast.Constant) and node.value == 0


def _terms(node: ast.expr, sign: int = 1) -> Iterator[_Term]:
    """Yield the terms of a sum, with their signs."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _terms(node.left, sign)
        yield from _terms(node.right, sign if isinstance(node.op, ast.Add) else -sign)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield from _terms(node.operand, -sign)
    else:
        yield _Term(sign, node)


def _role(node: ast.expr) -> str:
    """Return "positive" or "negative" for a term with words of one kind in its names."""
    names = [one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in ast.walk(node)]
    each = [_WORD.findall(name.lower()) for name in names]
    words = {_PAIRS.get(word, word) if len(of) > 1 else word for of in each for word in of}
    kinds = [role for role, of in (("positive", _POSITIVE), ("negative", _NEGATIVE)) if not words.isdisjoint(of)]
    return kinds[0] if len(kinds) == 1 else ""


def _kind(node: ast.expr, context: Context, order: int, program: Program, depth: int = 0) -> str | None:
    """Return "similarity" or "distance" by the functions that made a value; None for both and for others."""
    if depth > _DEEPEST:
        return None
    if dotted(node):
        made = [
            one.value
            for one in program.values.reaching(dotted(node), context, order) or []
            if one.value is not None and one.how == "=" and not one.index
        ]
        kinds = {_kind(one, context, order, program, depth + 1) for one in made} or {None}
        if kinds == {None}:
            kinds = {_KINDS[word] for word in _WORD.findall(dotted(node).lower()) if word in _KINDS}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        turned = {"similarity": "distance", "distance": "similarity"}
        return turned.get(_kind(node.right, context, order, program, depth + 1) or "")
    names = {dotted(one.func).rpartition(".")[2] for one in ast.walk(node) if isinstance(one, ast.Call)}
    names |= {
        one.func.attr for one in ast.walk(node) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
    }
    products = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.MatMult) for one in ast.walk(node))
    differs = any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Sub) for one in ast.walk(node))
    products |= not differs and "sum" in names and any(isinstance(one, ast.Mult) for one in ast.walk(node))
    found = [
        kind
        for kind, there in (
            ("similarity", bool(names & _SIMILAR) or products),
            ("distance", bool(names & _APART) or differs),
        )
        if there
    ]
    if found or depth == _DEEPEST:
        return found[0] if len(found) == 1 else None
    below = {
        kind
        for one in ast.walk(node)
        if isinstance(one, ast.Name) and (kind := _kind(one, context, order, program, depth + 1))
    }
    return below.pop() if len(below) == 1 else None
