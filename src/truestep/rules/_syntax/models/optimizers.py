"""Settings of optimizers out of range, also from the syntax."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

from truestep import source
from truestep.findings import Confidence
from truestep.syntax import Call, Program, Suspicion

_PENALTIES = frozenset({"abs", "norm", "square", "pow", "mul_", "div_", "copy_", "clamp_"})
"""Methods of parameters of which a penalty or a decay is made."""
_TRAINING = frozenset({"backward", "step"})
_SMALL = 0.005
"""Largest momentum, or share of the old squares, that is a weight decay in another place."""
_LONGER = 4
"""Steps that the first beta averages over, relative to those of the second, from which on this slows down a training.
Betas such as 0.95 and 0.9, or 0.98 and 0.95, train as well as usual ones."""
_WITH_BETAS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam"})
_PLACES = {
    "SGD": {"momentum": 2, "weight_decay": 4},
    "RMSprop": {"alpha": 2, "weight_decay": 4, "momentum": 5},
    **{kind: {"betas": 2} for kind in _WITH_BETAS},
}
"""Places of settings among the arguments of torch's optimizers, behind the parameters and the learning rate."""

_CHANGED = re.compile(
    r"""\[\s*["'](?:momentum|betas|alpha)["']\s*\]\s*[-+*/]?=[^=]|\.update\([^()]*\b(?:momentum|betas|alpha)\b"""
    r"""|\b(?:OneCycle|Cyclic)LR\("""
)
"""Settings that are assigned later, as by a schedule."""


class OutOfRange(NamedTuple):
    """The texts of a setting out of range; ``message`` names the optimizer as ``{kind}``."""

    message: str
    label: str
    help: str
    usual: str


def out_of_range(settings: dict[str, float], weight_decay: float) -> OutOfRange | None:
    """Return the failure of the settings of an optimizer; None if each is in its range."""
    first, second = settings.get("beta1", 0.0), settings.get("beta2", 1.0)
    if first and (not second or 1 - second > _LONGER * (1 - first)):
        return OutOfRange(
            f"the betas of {{kind}} are exchanged: {first:g} and {second:g}",
            "averages gradients over more steps than their squares",
            f"exchange them: `betas=({second:g}, {first:g})`",
            "0.9 and 0.999",
        )
    momentum, alpha = settings.get("momentum", 0.0), settings.get("alpha", 0.5)
    if momentum >= 1 or (0 < momentum <= _SMALL and not weight_decay):
        shifted = momentum < 1
        return OutOfRange(
            f"the momentum of {{kind}} is {momentum:g}",
            "a weight decay as the momentum" if shifted else "earlier gradients never fade",
            f"pass settings by name: `momentum=0.9, weight_decay={momentum:g}`" if shifted else "use a momentum of 0.9",
            "0.5 to 0.99",
        )
    if "alpha" in settings and (alpha >= 1 or (0 < alpha <= _SMALL and not weight_decay)):
        return OutOfRange(
            f"`alpha` of {{kind}} is {alpha:g}",
            "keeps the first squares for ever" if alpha >= 1 else "a weight decay as `alpha`",
            "pass settings by name, and leave `alpha` out",
            "0.9 to 0.99",
        )
    return None


def is_usual(settings: dict[str, float], other: dict[str, float]) -> bool:
    """Return True if settings are in their range, and one that is not in the range of others has a usual value."""
    if out_of_range(settings, 0.0) is not None:
        return False
    return any(value > _SMALL and name in other and value != other[name] for name, value in settings.items())


def optimizer_setting_out_of_range(program: Program) -> Iterator[Suspicion]:
    """Yield constructions of optimizers with a setting out of range that the source writes out."""
    yield from exchanged_groups(program)
    if _CHANGED.search(program.text):
        return
    for call in program.optimizers:
        places = _PLACES.get(call.method, {})
        if not places or call.unpacks:
            continue
        settings: dict[str, float] = {}
        for name, place in places.items():
            value = call.argument(place, name)
            if name == "betas" and isinstance(value, ast.Tuple | ast.List):
                pairs = zip(("beta1", "beta2"), value.elts, strict=False)
                settings |= {
                    beta: number for beta, each in pairs if (number := _number(each, call, program)) is not None
                }
            elif value is not None and (number := _number(value, call, program)) is not None:
                settings[name] = number
            elif value is not None and name == "weight_decay":
                settings[name] = 1.0  # unknown, and given
        if not {"beta1", "beta2"} <= settings.keys():
            settings.pop("beta1", None)
        found = out_of_range(settings, settings.get("weight_decay", 0.0))
        if found is not None:
            yield Suspicion(call.node, found.message.format(kind=call.method), found.label, found.help)


_VECTORS = ("ndim < 2", "ndim <= 1", "ndim == 1", "dim() < 2", "dim() <= 1", "dim() == 1")
_MATRICES = ("ndim >= 2", "ndim > 1", "dim() >= 2", "dim() > 1")


def exchanged_groups(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers with a weight decay of the parameters of one dimension, and with one of zero of the others."""
    lists = {
        target.id: ast.unparse(node.value)
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.ListComp)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    groups = [node for node in ast.walk(program.tree) if isinstance(node, ast.List) and _exchanges(node, lists)]
    names = {
        target.id
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign) and node.value in groups
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in program.optimizers if groups and not any(map(_decays, ast.walk(program.tree))) else ():
        given = call.argument(0, "params")
        if given in groups or (isinstance(given, ast.Name) and given.id in names):
            yield Suspicion(
                call.node,
                "biases have a weight decay, and matrices have none",
                "the groups are exchanged",
                "give the weight decay to the parameters with two or more dimensions",
                confidence=Confidence.MEDIUM,
            )


def _exchanges(groups: ast.List, lists: dict[str, str]) -> bool:
    """Return True for a group of vectors with a weight decay, beside one of matrices with zero.

    >>> text = "[{'params': [p for p in w if p.ndim < 2], 'weight_decay': 0.1}, {'params': m, 'weight_decay': 0.0}]"
    >>> lists = {"m": "[p for p in w if p.ndim >= 2]"}
    >>> [_exchanges(ast.parse(one, mode="eval").body, lists) for one in (text, text.replace("< 2", "> 2"))]
    [True, False]
    """
    decays: dict[str, bool] = {}
    for group in groups.elts:
        keys = [ast.unparse(key).strip("'") if key is not None else "" for key in getattr(group, "keys", [])]
        values = dict(zip(keys, getattr(group, "values", []), strict=False))
        made, decay = values.get("params"), values.get("weight_decay")
        text = lists.get(made.id, "") if isinstance(made, ast.Name) else "" if made is None else ast.unparse(made)
        for kind, signs in (("vectors", _VECTORS), ("matrices", _MATRICES)):
            if decay is not None and any(text.endswith(f"{sign}]") for sign in signs):
                decays[kind] = not (isinstance(decay, ast.Constant) and decay.value == 0)
    return decays == {"vectors": True, "matrices": False}


def _number(node: ast.expr, call: Call, program: Program) -> float | None:
    value = program.values.constant(node, call.context, call.order)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@functools.lru_cache(maxsize=64)
def decays_by_hand(path: str) -> bool:
    """Return True if a file has a penalty of parameters, or decays them, in a loop over them, or sets weight decays."""
    tree = source.parsed(path)
    return tree is not None and any(map(_decays, source.walk(tree)))


def _decays(node: ast.AST) -> bool:
    """Return True for a loop that computes with parameters, and for a weight decay that is assigned to a group.

    >>> texts = "sum(p.abs().sum() for p in w)", "[p.ndim for p in w]", "g['weight_decay'] = 0.1", "g['lr'] = 0.1"
    >>> [any(map(_decays, ast.walk(ast.parse(text)))) for text in texts]
    [True, False, True, False]
    """
    match node:
        case ast.For(target=target, body=body):
            called = {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}
            parts: list[ast.AST] = [] if called & _TRAINING else [*body]
        case ast.GeneratorExp(elt=part, generators=[ast.comprehension(target=target)]):
            parts = [part]
        case ast.ListComp(elt=part, generators=[ast.comprehension(target=target)]):
            parts = [part]
        case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value="weight_decay"))]):
            return True
        case _:
            return False
    names = {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
    return any(_is_penalty(one, names) for part in parts for one in ast.walk(part))


def _is_penalty(node: ast.AST, names: set[str]) -> bool:
    """Return True for a size of a variable, and for a call that scales it in place."""
    match node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow()):
            return name in names
        case ast.BinOp(left=ast.Name(id=name), right=ast.Name(id=other), op=ast.Mult()):
            return name == other and name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=called)):
            return name in names and called in _PENALTIES
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="data"), attr=called)):
            return name in names and called in _PENALTIES
        case ast.BinOp(left=ast.Name(id=name), op=ast.Sub()):
            return name in names
    return False
