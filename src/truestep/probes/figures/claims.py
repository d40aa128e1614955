"""Figures that names claim: a variable, the key of a dict, an attribute, or the text before a printed value."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.context.local_variables import own_dict
from truestep.probes.evaluation.quotients import body_of, value

if TYPE_CHECKING:
    from truestep.probes.figures.function_ends import Returned

_OF_CLASSES = {
    "recall": "recall", "recalls": "recall", "sensitivity": "recall", "tpr": "recall", "balanced": "balanced",
    "bacc": "balanced", "uar": "balanced", "precision": "precision", "precisions": "precision", "ppv": "precision",
    "f1": "f1", "f1s": "f1", "f1score": "f1", "fscore": "f1", "dice": "f1", "iou": "iou", "ious": "iou",
    "miou": "iou", "jaccard": "iou", "specificity": "specificity", "tnr": "specificity",
}  # fmt: skip
_OF_LOSSES = {
    "perplexity": "perplexity", "perplexities": "perplexity", "ppl": "perplexity", "ppls": "perplexity",
    "pplx": "perplexity", "bpc": "bits", "bits": "bits",
}  # fmt: skip
_CLAIMS = _OF_CLASSES | _OF_LOSSES
_OTHERS = frozenset({
    "at", "k", "top", "loss", "losses", "best", "threshold", "curve", "auc", "auroc", "ap", "map", "num", "count",
    "sum", "total", "fn", "weight", "weights", "target", "min", "max", "lowest", "highest", "ema", "running", "std",
    "delta", "diff", "gain", "log", "last", "prev", "previous", "soft", "goal", "patience",
})  # fmt: skip
"""Words of names that hold something else, such as ``best_f1``, ``recall_at_5`` and ``dice_loss``."""
_AVERAGED = frozenset({"average", "avg"})
"""Before a precision, the area under a curve."""
_WORD = re.compile(r"[^\W_]+")
_MOST = 100
"""Numbers of a figure, and entries of a dict."""


class Claimed(NamedTuple):
    """A value with the name of a figure.

    Attributes:
        held: the object, to know whether it is a new one.
        numbers: its numbers: one, or several of a list or an array.
        claim: the figure that its name claims.
        name: the variable, or the source of an expression.
        place: the expression, if it is not a variable.
    """

    held: object
    numbers: tuple[float, ...]
    claim: str
    name: str
    place: Site | None = None


@functools.lru_cache(maxsize=4096)
def claim_of(text: str) -> str:
    """Return the figure that a name claims; "" for none, and for several.

    >>> claim_of("val_recall"), claim_of("macro F1: "), claim_of("best_f1"), claim_of("precision/recall ")
    ('recall', 'f1', '', '')
    """
    if "@" in text:
        return ""
    words = set(_WORD.findall(text.lower()))
    found = {_CLAIMS[word] for word in words if word in _CLAIMS}
    if len(found) != 1 or not words.isdisjoint(_OTHERS):
        return ""
    (claim,) = found
    return "" if claim == "precision" and not words.isdisjoint(_AVERAGED) else claim


def is_of_classes(claim: str) -> bool:
    """Return True for a figure of predicted classes, and False for one of losses."""
    return claim in _OF_CLASSES.values()


def claimed(torch: Any, names: Mapping[str, object], code: CodeType | None, path: str) -> Iterator[tuple[str, Claimed]]:
    """Yield the values of a frame with the names of figures, each with a key: its place among the names.

    Args:
        torch: the module.
        names: variables of the frame.
        code: its code; None for a module that has ended.
        path: its file.
    """
    for name, held in list(names.items()):
        yield from _named(torch, name, held, name)
        if name == "self":
            for key, part in list((own_dict(held) or {}).items()):
                yield from _named(torch, f"self.{key}", part, key)
    for one in printed(path, 0 if code is None or not code.co_flags & 1 else code.co_firstlineno):
        number = value(torch, one.node, names)
        if number is not None:
            place = Site(path, one.node.lineno, one.node.col_offset, one.node.end_lineno or 0)
            yield f"{one.claim}:{one.text}", Claimed(number, (number,), one.claim, one.text, place)


def returned(torch: Any, ends: Iterable[Returned]) -> Iterator[tuple[str, Claimed]]:
    """Yield the values with the names of figures that a function returns, each with a key."""
    for one in ends:
        claim = claim_of(one.label)
        if claim and (numbers := _numbers(torch, one.value)):
            yield f"return {one.text}", Claimed(one.value, numbers, claim, claim, one.place)


def _named(torch: Any, key: str, held: object, name: str) -> Iterator[tuple[str, Claimed]]:
    claim = claim_of(name)
    if type(held) is dict and len(held) <= _MOST:
        for inner, part in list(held.items()):
            if type(inner) is str and (found := claim_of(inner) or claim) and (numbers := _numbers(torch, part)):
                yield f"{key}[{inner!r}]", Claimed(part, numbers, found, f"{key}[{inner!r}]")
    elif claim and (numbers := _numbers(torch, held)):
        yield key, Claimed(held, numbers, claim, key)


def _numbers(torch: Any, held: object) -> tuple[float, ...]:
    """Return the numbers of a value: of a number, a list, an array or a tensor on the CPU; () for others."""
    kind = type(held)
    if kind in (float, int):
        return (float(held),)  # type: ignore[arg-type]
    if kind in (list, tuple) and 0 < len(held) <= _MOST:  # type: ignore[arg-type]
        each = [_numbers(torch, part) for part in held]  # type: ignore[attr-defined]
        return tuple(one[0] for one in each) if all(len(one) == 1 for one in each) else ()
    if kind is torch.Tensor:
        tensor: Any = held
        plain = tensor.is_cpu and tensor.dim() < 2 and 0 < tensor.numel() <= _MOST and not tensor.is_complex()
        return tuple(map(float, tensor.detach().reshape(-1).tolist())) if plain else ()
    if kind.__module__ == "numpy":
        array: Any = held
        if getattr(array, "ndim", 2) < 2 and 0 < array.size <= _MOST and array.dtype.kind in "fiu":
            return tuple(map(float, array.reshape(-1).tolist()))
    return ()


class Printed(NamedTuple):
    """An expression that is printed behind the name of a figure."""

    node: ast.expr
    text: str
    claim: str


@functools.lru_cache(maxsize=64)
def printed(path: str, first: int) -> tuple[Printed, ...]:
    """Return the expressions that the function at a line, or a module, prints behind the name of a figure."""
    found = []
    for node in body_of(path, first):
        parts: list[ast.expr] = []
        if isinstance(node, ast.JoinedStr):
            parts = node.values
        elif isinstance(node, ast.Call):
            parts = node.args
        before = ""
        for part in parts:
            shown = part.value if isinstance(part, ast.FormattedValue) else part
            if isinstance(shown, ast.Constant):
                before = shown.value if isinstance(shown.value, str) else ""
                continue
            claim, before = claim_of(before), ""
            if claim and not isinstance(shown, ast.JoinedStr) and not _is_named(shown):
                found.append(Printed(shown, ast.unparse(shown), claim))
    return tuple(found)


def _is_named(node: ast.expr) -> bool:
    """Return True for a variable, an attribute or an entry with the name of a figure: its value is read as such."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return bool(claim_of(name))
        case ast.Subscript(value=owner, slice=ast.Constant(value=str() as key)):
            return bool(claim_of(key)) or _is_named(owner)
    return False


@functools.lru_cache(maxsize=256)
def computed(path: str, claim: str, name: str, function: str) -> Site | None:
    """Return the line that computes a figure.

    It is the last division of a function with its name, else an assignment to such a name in the function of the
    evaluation, else the first statement that stores the variable.
    """
    claims = {claim, "recall"} if claim == "balanced" else {claim}
    nodes = list(source.walk(source.parsed(path) or ast.Module([], [])))
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef)]
    for one in functions:
        if claim_of(one.name) in claims:
            divided = [part for part in source.walk(one) if isinstance(part, ast.BinOp) and _is_division(part)]
            if divided:
                return _site(path, divided[-1], one.name)
    inside = [part for one in functions if one.name == function for part in source.walk(one)]
    assigned = [part for part in inside if isinstance(part, ast.Assign) and claims & _claims(part)]
    if assigned:
        return _site(path, assigned[0], function)
    plain, _, key = name.partition("[")
    entries = [_entry(node, key[1:-2]) for node in nodes] if key else []
    entry = next((one for one in entries if one is not None), None)
    if entry is not None:
        return _site(path, entry)
    plain = plain.rpartition(".")[2]
    stored = (
        node
        for node in nodes
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
        and plain == (node.id if isinstance(node, ast.Name) else node.attr)
    )  # fmt: skip
    return next((_site(path, node) for node in stored), None)


def _entry(node: ast.AST, key: str) -> ast.expr | None:
    """Return the expression that stores an entry of a dict; None for another node."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=found), ctx=ast.Store()) if found == key:
            return node
        case ast.Dict(keys=keys, values=values):
            for known, value in zip(keys, values, strict=True):
                if isinstance(known, ast.Constant) and known.value == key:
                    return value
    return None


def _is_division(node: ast.BinOp) -> bool:
    return isinstance(node.op, ast.Div)


def _claims(node: ast.Assign) -> set[str]:
    return {claim_of(one.id) for target in node.targets for one in source.walk(target) if isinstance(one, ast.Name)}


def _site(path: str, node: ast.expr | ast.stmt, function: str = "") -> Site:
    return Site(
        path, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, function=function
    )  # fmt: skip
