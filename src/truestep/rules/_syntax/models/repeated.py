"""Lists of models that hold one model several times, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.models.modules import is_layer
from truestep.syntax import Call, Kind, Program, Suspicion, dotted

_CONTAINERS = ("torch.nn.ModuleList", "torch.nn.Sequential")
_REPEATED = re.compile(r"\)\s*\]\s*\)?\s*\*(?!\*)|[\w)\]]\s*\*\s*\(?\s*\[\s*[\w.]+\(")
"""A list with a call, times a number; a list that is unpacked stands after a bracket or a comma."""


_ON_PURPOSE = re.compile(r"shar(?:e|ing)|tie[ds]?\b|tying|albert|universal", re.IGNORECASE)
_BEFORE = 3
"""Lines before a list that may say that its weights are shared on purpose."""


def one_model_repeated(program: Program) -> Iterator[Suspicion]:
    """Yield lists that repeat one new model, so that all their elements are one object; not those that say so."""
    lines = program.text.splitlines()
    for found in _repeats(program):
        first, last = max(0, getattr(found.node, "lineno", 1) - 1 - _BEFORE), getattr(found.node, "end_lineno", 0)
        named = isinstance(found.node, ast.ListComp)  # by a name: what the file says of it anywhere counts
        if not _ON_PURPOSE.search(program.text if named else "\n".join(lines[first:last])):
            yield found


def _repeats(program: Program) -> Iterator[Suspicion]:
    if _REPEATED.search(program.text):
        for node in ast.walk(program.tree):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                yield from _multiplied(node, program)
    for call in program.named(_CONTAINERS[0]):
        value = call.argument(0, "modules")
        if isinstance(value, ast.ListComp) and isinstance(value.elt, ast.Name):
            yield from _listed(value.elt, value, call, program)


def _multiplied(node: ast.BinOp, program: Program) -> Iterator[Suspicion]:
    for part, times in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(part, ast.List) or (isinstance(times, ast.Constant) and times.value in (0, 1)):
            continue
        for inner in part.elts:
            made = program.call_at.get(inner)
            if made is not None and _has_weights(made, program):
                inside = any(
                    one is node
                    for call in program.named(*_CONTAINERS)
                    for value in call.arguments()
                    for one in ast.walk(value)
                )
                yield _repeated(node, made, ast.unparse(node), Confidence.MEDIUM if inside else Confidence.HIGH)


def _listed(name: ast.Name, value: ast.ListComp, call: Call, program: Program) -> Iterator[Suspicion]:
    """Yield a list of the same layer for each element of a range."""
    if any(dotted(node) == name.id for part in value.generators for node in ast.walk(part.target)):
        return
    made = program.call_at.get(program.values.origin(name, call.context, call.order)[0])
    if made is not None and made.scope is call.scope and _has_weights(made, program):
        yield _repeated(value, made, ast.unparse(value), Confidence.MEDIUM)


def _repeated(node: ast.AST, made: Call, text: str, confidence: Confidence) -> Suspicion:
    return Suspicion(
        node,
        f"all elements of `{text}` are one model: they share their weights",
        "repeats one object",
        f"make each: `[{ast.unparse(made.node)} for _ in range(...)]`",
        ((made.node, "is made once"),),
        confidence,
    )


def _has_weights(made: Call, program: Program) -> bool:
    """Return True if a call makes a layer with parameters, or is one of a function of this file that makes a model."""
    if is_layer(made.node, program):
        return True
    function = None if made.key else program.definition(made.method, made.scope)
    made_by = function is not None and function.kind == "function"
    return made_by and program.kinds.is_a(made.node, Kind.MODEL, made.context, made.order, sure=True)
