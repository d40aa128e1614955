"""Results and metrics that are dropped, overwritten or wrong, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.data.batches import wrong_sums
from truestep.rules._syntax.data.figures import wrong_formulas
from truestep.rules._syntax.data.sums import sums_of_all_reports
from truestep.syntax import (
    Act,
    Binding,
    Call,
    Kind,
    Loop,
    Program,
    Suspicion,
    dotted,
    is_made_by_losses,
    names_in,
    part_of,
)
from truestep.syntax.attributes import lost_in

_TENSOR_ONLY = {
    "masked_fill", "masked_scatter", "index_fill", "index_add", "scatter_add", "unsqueeze", "clamp", "clamp_min",
    "clamp_max", "log_softmax", "softmax", "index_copy", "permute", "lerp", "mul", "addcmul", "addcdiv",
}  # fmt: skip
"""Methods of tensors that change nothing, with names that other objects hardly have."""
_LOWER, _HIGHER = (
    re.compile(r"(?:^|_)(?:loss|error|err|mse|mae|rmse|ppl|perplexity)(?:_|$)"),
    re.compile(r"(?:^|_)(?:acc|accuracy|f1|auc|dice|iou|miou|bleu|r2)(?:_|$)"),
)


def worst_weights_kept(program: Program) -> Iterator[Suspicion]:
    """Yield conditions that keep the weights of a larger loss or a smaller accuracy."""
    branches = {guard.node: None for call in program.method("state_dict") for guard in call.context.guards}
    for node in branches:
        if isinstance(node, ast.If):
            for test in _conditions(node):
                yield from _worse(program, node, test)


def _conditions(node: ast.If) -> list[ast.Compare]:
    """Return the comparisons that all hold in a branch."""
    both = isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And)
    parts = node.test.values if both and isinstance(node.test, ast.BoolOp) else [node.test]
    return [one for one in parts if isinstance(one, ast.Compare) and len(one.ops) == 1]


def _worse(program: Program, node: ast.If, test: ast.Compare) -> Iterator[Suspicion]:
    sides = (dotted(test.left), dotted(test.comparators[0]))
    if not all(sides) or not isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Lt | ast.LtE):
        return
    greater = isinstance(test.ops[0], ast.Gt | ast.GtE)
    for place, best in enumerate(sides):
        new = sides[1 - place]
        if not _replaces(node, best, new) or "state_dict" not in "".join(map(ast.unparse, node.body)):
            continue
        larger = greater if place == 1 else not greater
        higher = _HIGHER.search(new.lower()) is not None
        lower = _LOWER.search(new.lower()) is not None or (
            not higher and is_made_by_losses(ast.walk(program.tree), new)
        )
        if lower != higher and (larger if lower else not larger):
            yield Suspicion(
                test,
                f"the weights with the {'largest loss' if lower else 'smallest metric'} are kept as the best ones",
                f"is true for a worse `{new}`",
                "turn the comparison round",
            )


def _replaces(node: ast.If, best: str, new: str) -> bool:
    """Return True if a branch assigns the new value to the best one."""
    return "best" in best.lower() and any(
        isinstance(one, ast.Assign) and dotted(one.targets[0]) == best and dotted(one.value) == new for one in node.body
    )


_PLAIN = ("add", "sub", "mul", "div", "lerp", "pow", "clamp", "addcmul", "addcdiv", "clone")
"""Operations that return a new tensor; all but the last have a form with "_" that changes its tensor."""


def _of_new(call: Call) -> bool:
    """Return True if one of two operations in a row changes its tensor, and the other one makes a new tensor."""
    inner = call.receiver
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return False
    if any(word.arg == "out" for word in inner.keywords):
        return False
    first = inner.func.attr
    pair = (first, call.method)
    return all(one.removesuffix("_") in _PLAIN for one in pair) and first.endswith("_") != call.method.endswith("_")


def result_never_read(program: Program) -> Iterator[Suspicion]:
    """Yield operations on a tensor that change nothing, and next values of attributes that a local variable gets."""
    yield from _lost_attributes(program)
    chained = [call for name in _PLAIN for call in program.method(name, f"{name}_") if _of_new(call)]
    for call in (*program.method(*_TENSOR_ONLY, "to", "cuda"), *chained):
        if (
            not call.alone
            or call.receiver is None
            or call.name
            or any(one.method in ("raises", "assertRaises") for one in call.context.withs)
        ):
            continue
        if any(word.arg in ("out", "inplace") for word in call.node.keywords):
            continue
        if call.method in ("to", "cuda") and not _of_loader(call, program):
            continue
        guess = program.kinds.receiver(call)
        if guess is not None and guess.kind is not Kind.OTHER:
            continue
        name = _plain(call)
        assigned = f"assign the result: `{call.key or 'x'} = {ast.unparse(call.node)}`"
        yield Suspicion(
            call.node,
            f"the result of `{name}` is dropped: the operation returns a new tensor",
            "changes nothing",
            f"call `{name}_`, which changes the tensor" if name in _PLAIN else assigned,
        )


def _lost_attributes(program: Program) -> Iterator[Suspicion]:
    for owner in ast.walk(program.tree):
        for method in owner.body if isinstance(owner, ast.ClassDef) else ():
            if isinstance(owner, ast.ClassDef) and isinstance(method, ast.FunctionDef):
                for name, node in lost_in(owner, method, program.tree):
                    yield Suspicion(
                        node.value,
                        f"nothing reads the new `{name}`: the attribute `self.{name}` keeps its value",
                        "a local variable gets the next value of the attribute",
                        f"assign it to `self.{name}`",
                        confidence=Confidence.MEDIUM,
                    )


def _plain(call: Call) -> str:
    """Return the operation of a statement that makes a new tensor."""
    inner = call.receiver
    if call.method.endswith("_") and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        return inner.func.attr
    return call.method


def _of_loader(call: Call, program: Program) -> bool:
    """Return True if the object of a method is a part of a batch of a loader: a whole batch may move in place."""
    bindings = call.scope.bindings.get(call.key, [])
    return bool(bindings) and all(
        one.how == "for"
        and one.context.loop is not None
        and len(one.index) > _pairs(one.context.loop)
        and program.roles.over_loader(one.context.loop) is not None
        for one in bindings
    )


def _pairs(loop: Loop) -> int:
    """Return the number of tuples that a loop makes around its batches, with `enumerate` and `zip`."""
    assert not isinstance(loop.node, ast.While)
    return sum(isinstance(one, ast.Name) and one.id in ("enumerate", "zip") for one in ast.walk(loop.node.iter))


def sum_overwritten(program: Program) -> Iterator[Suspicion]:
    """Yield losses of the parts of a sequence that overwrite their sum, and sums that are never set to zero again."""
    if not program.method("backward"):
        return
    for loop in program.loops:
        for key, bindings in loop.scope.bindings.items():
            inside = [one for one in bindings if one.context.loop is loop]
            starts = [
                one for one in bindings if one.context.loop is loop.parent and one.order < loop.first and _zero(one)
            ]
            if (
                len(inside) != 1
                or not starts
                or inside[0].how != "="
                or inside[0].index
                or inside[0].context.guards != loop.guards
            ):
                continue
            value = inside[0].value
            if not isinstance(value, ast.Call) or key in names_in(value) or len(bindings) != len(starts) + 1:
                continue
            if any(loop.first <= order <= loop.last for order, _ in loop.scope.loads.get(key, ())):
                continue
            behind = [
                call
                for call in program.method("backward")
                if call.key == key and call.scope is loop.scope and call.order > loop.last and call.loop is loop.parent
            ]
            if behind:
                yield Suspicion(
                    inside[0].node,
                    f"`{key}` is overwritten in every pass of the loop, and is not the sum of them",
                    "keeps the last value only",
                    f"add the values: `{key} = {key} + ...`",
                    (
                        (behind[0].node, "differentiates the last value"),
                        (starts[-1].node, "set to zero before the loop"),
                    ),
                )


def _zero(one: Binding) -> bool:
    value = part_of(one)
    return isinstance(value, ast.Constant) and value.value in (0, 0.0) and value.value is not False


def metric_misreported(program: Program) -> Iterator[Suspicion]:
    """Yield figures with a wrong formula or a wrong sum, and quotients of counts that go on from epoch to epoch."""
    yield from wrong_formulas(program)
    yield from wrong_sums(program)
    yield from sums_of_all_reports(program)
    for outer in program.loops:
        for key, bindings in outer.scope.bindings.items():
            added = [one for one in bindings if one.how == "augmented" and one.operator == "Add" and _inner(one, outer)]
            added = [one for one in added if one.value is not None and _measures(one.value)]
            starts = [one for one in bindings if one.how == "="]
            if not added or len(added) + len(starts) != len(bindings) or not starts or not all(map(_zero, starts)):
                continue
            if any(one.context.loop is not None and one.context.loop.within(outer) for one in starts):
                continue
            loop = added[0].context.loop
            assert loop is not None
            acts = {one.act for one in program.flow.of_loop(loop)}
            if Act.FORWARD not in acts or Act.BACKWARD in acts or outer.parent is not None:
                continue
            behind = [node for order, node in outer.scope.loads.get(key, ()) if loop.last < order <= outer.last]
            for node in ast.walk(outer.node) if behind else ():
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and node.left in behind:
                    yield Suspicion(
                        node,
                        f"`{key}` counts on from epoch to epoch, and the metric is that of all epochs together",
                        "divides the counts of all epochs so far",
                        f"set `{key}` to zero at the start of each evaluation",
                        ((starts[0].node, "set to zero once"), (added[0].node, "counts on")),
                    )


def _measures(value: ast.expr) -> bool:
    """Return True if a value comes from a call, other than the length of something."""
    return any(isinstance(node, ast.Call) and dotted(node.func) != "len" for node in ast.walk(value))


def _inner(one: Binding, outer: Loop) -> bool:
    return one.context.loop is not None and one.context.loop.parent is outer
