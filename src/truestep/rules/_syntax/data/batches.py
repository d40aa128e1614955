"""Figures of an evaluation that are added up wrongly over its batches, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.rules._syntax.data.roles import predicted, values_in
from truestep.syntax import Act, Binding, Call, Context, Loop, Program, Suspicion, counts_samples, dotted, part_of

_MEANS = re.compile(
    r"^torch\.nn\.functional\.(?:cross_entropy|nll_loss|binary_cross_entropy(?:_with_logits)?|mse_loss|l1_loss|"
    r"smooth_l1_loss|huber_loss)$|^torch\.nn\.(?:CrossEntropyLoss|NLLLoss|BCELoss|BCEWithLogitsLoss|MSELoss|L1Loss|"
    r"SmoothL1Loss|HuberLoss)$"
)
"""Losses that are the mean over their samples unless a reduction is given."""
_KEEPS = ("item", "detach", "cpu", "sqrt", "abs")
_SHAPES = ("shape", "size", "dtype", "device", "dim")


def wrong_sums(program: Program) -> Iterator[Suspicion]:
    """Yield figures of the last batch only, and sums over batches that are divided by another number than theirs."""
    for loop in program.loops:
        found = [*_last_batch(loop, program), *_overwritten(loop, program), *_divided(loop, program)]
        if found:  # the operations of a loop are read last, since they take longest
            acts = list(program.flow.of_loop(loop))
            trains = [one for one in acts if one.act in (Act.BACKWARD, Act.STEP, Act.SCHEDULE)]
            by_phase = all(len(one.guards) > len(loop.guards) for one in trains)
            if by_phase and any(one.act is Act.FORWARD for one in acts):
                yield from found


def _uses(key: str, loop: Loop) -> tuple[list[ast.expr], list[ast.expr]]:
    """Return the reads of a name inside a loop, and those behind it."""
    uses = loop.scope.loads.get(key, ())
    ends = [one.order for one in loop.scope.bindings.get(key, ()) if one.order > loop.last]
    inside = [node for order, node in uses if loop.first <= order <= loop.last]
    return inside, [node for order, node in uses if loop.last < order <= min(ends, default=order)]


def _assigned(loop: Loop) -> Iterator[tuple[str, Binding]]:
    """Yield the names that every pass of a loop assigns once, and nothing else in the function before its end."""
    for key, bindings in loop.scope.bindings.items():
        inside = [one for one in bindings if one.context.loop is loop]
        if len(inside) == 1 and "." not in key and "[" not in key:
            one = inside[0]
            if one.how == "=" and one.context.guards == loop.guards and not one.context.deferred:
                yield key, one


def _last_batch(loop: Loop, program: Program) -> Iterator[Suspicion]:
    """Yield predictions that each pass overwrites, if they are compared with labels behind the loop only."""
    found: dict[bool, tuple[Binding, ast.expr]] = {}
    for key, one in _assigned(loop):
        inside, behind = _uses(key, loop)
        value = part_of(one)
        if inside or not behind or value is None:
            continue
        names = set(values_in(value))
        role = predicted(value, one.context, one.order, program)
        given = any(each.context.loop is loop for name in names for each in loop.scope.bindings.get(name, ()))
        if role is not None and given:
            found.setdefault(role, (one, behind[0]))
    for key, bindings in loop.scope.bindings.items():  # the labels may be the variable of the loop
        if all(one.how == "for" and one.node is loop.node for one in bindings):
            inside, behind = _uses(key, loop)
            if behind and not inside and predicted(behind[0], _at(loop), loop.last, program) is False:
                found.setdefault(False, (bindings[0], behind[0]))
    leaves = len(found) == 2 and any(isinstance(one, ast.Break | ast.Return | ast.Yield) for one in ast.walk(loop.node))
    if (
        len(found) == 2
        and not leaves
        and program.roles.over_batches(loop)
        and not any(_shaped(node, loop) for _, node in found.values())
    ):
        one, use = found[True]
        yield Suspicion(
            one.node,
            f"`{one.key}` is compared with the labels behind the loop only: the figure is that of the last batch",
            "keeps the last batch only",
            "collect the batches in a list, and join them behind the loop",
            ((use, "reads the last batch"),),
        )


def _at(loop: Loop) -> Context:
    return Context(loop.scope, loop, loop.guards)


def _shaped(node: ast.expr, loop: Loop) -> bool:
    """Return True if only the shape of a value is read."""
    return any(
        isinstance(one, ast.Attribute) and one.value is node and one.attr in _SHAPES
        for one in ast.walk(loop.scope.node)
    )


def _overwritten(loop: Loop, program: Program) -> Iterator[Suspicion]:
    """Yield counts that start at zero, are overwritten by each batch, and divided behind the loop."""
    for key, one in _assigned(loop):
        bindings = loop.scope.bindings[key]
        starts = [each for each in bindings if each.order < loop.first and each.context.loop is loop.parent]
        inside, behind = _uses(key, loop)
        value = part_of(one)
        if not starts or not _zero(starts[-1]) or inside or value is None or not _is_sum(value):
            continue
        divisions = [node for node in _divisions(loop) if node.left in behind]
        if divisions:
            yield Suspicion(
                one.node,
                f"`{key}` is overwritten by each batch, and is not the sum of them",
                "keeps the last batch only",
                f"add the batches: `{key} += {ast.unparse(value)}`",
                ((starts[-1].node, "set to zero before the loop"), (divisions[0], "divides the last batch")),
            )


def _zero(one: Binding) -> bool:
    value = part_of(one)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float) and value.value == 0


def _is_sum(value: ast.expr) -> bool:
    """Return True if a value is a sum over the samples of a batch."""
    called = {
        node.func.attr
        for node in ast.walk(value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    compared = any(isinstance(node, ast.Compare) for node in ast.walk(value)) or "eq" in called
    return compared and "sum" in called and "mean" not in called


def _divisions(loop: Loop) -> Iterator[ast.BinOp]:
    """Yield the divisions in the function of a loop."""
    return (node for node in ast.walk(loop.scope.node) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div))


def _divided(loop: Loop, program: Program) -> Iterator[Suspicion]:
    """Yield sums of means that are divided by samples, and sums over samples that are divided by batches."""
    for key, bindings in loop.scope.bindings.items():
        added = [
            one for one in bindings if one.context.loop is loop and one.how == "augmented" and one.operator == "Add"
        ]
        rest = [one for one in bindings if one not in added]
        if len(added) != 1 or not rest or not all(_zero(one) or _divides(one) for one in rest):
            continue
        means = _of_batch(added[0], program)
        if means is None or added[0].context.guards != loop.guards or _of_one(loop, program):
            continue
        for node, divisor in _quotients(key, loop):
            samples = _samples(divisor, loop, program)
            if samples is means:
                yield Suspicion(
                    node,
                    f"`{key}` adds a {'mean' if means else 'sum'} of each batch, and is divided by the number of "
                    f"{'samples' if means else 'batches'}",
                    f"divides by the number of {'samples' if means else 'batches'}",
                    f"divide by the number of {'batches' if means else 'samples'}"
                    + (", or multiply each mean by the size of its batch" if means else ""),
                    ((added[0].node, f"adds a {'mean' if means else 'sum'}"),),
                )


def _divides(one: Binding) -> bool:
    return one.how == "augmented" and one.operator == "Div"


def _quotients(key: str, loop: Loop) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the divisions of a sum behind its loop, with their divisors."""
    behind = _uses(key, loop)[1]
    for node in _divisions(loop):
        if node.left in behind:
            yield node, node.right
    for one in loop.scope.bindings[key]:
        if _divides(one) and one.order > loop.last and one.value is not None and one.context.loop is loop.parent:
            yield one.node, one.value


def _of_batch(one: Binding, program: Program) -> bool | None:
    """Return True for the mean of the losses of a batch, False for a number of right answers in it; None if unknown."""
    value = one.value
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _KEEPS:
        value = value.func.value
    if isinstance(value, ast.Call) and dotted(value.func) == "float" and value.args:
        value = value.args[0]
    if value is None:
        return None
    found, where, at = program.values.origin(value, one.context, one.order)
    if isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute) and found.func.attr == "item":
        found, where, at = program.values.origin(found.func.value, where, at)
    if _is_count(found):
        return False
    call = program.call_at.get(found)
    if call is None:
        return None
    if call.method == "mean" and not call.node.args and not call.node.keywords and call.receiver is not None:
        return True
    made = program.call_at.get(program.values.origin(call.node.func, call.context, call.order)[0]) or call
    reduced = any(word.arg in ("reduction", "size_average", "reduce", None) for word in made.node.keywords)
    return True if _MEANS.match(made.name) and not reduced else None


def _is_count(node: ast.expr) -> bool:
    """Return True for the sum of a comparison, of all the values in it."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr != "sum"
        or node.args
    ):
        return False
    inner = node.func.value
    while (
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and inner.func.attr in ("float", "int", "cpu")
    ):
        inner = inner.func.value
    return isinstance(inner, ast.Compare) or (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "eq"
    )


def _samples(divisor: ast.expr, loop: Loop, program: Program) -> bool | None:
    """Return True if a divisor is a number of samples, False for the number of batches of a loop; None if unknown."""
    if isinstance(divisor, ast.Call) and dotted(divisor.func) == "len" and len(divisor.args) == 1:
        over = dotted(divisor.args[0])
        if over.endswith((".dataset", ".sampler")):
            return True
        loader = program.roles.over_loader(loop)
        return False if over and isinstance(loader, ast.expr) and over == dotted(loader) else None
    if isinstance(divisor, ast.Name | ast.Attribute | ast.Subscript) and counts_samples(divisor):
        return True if _over_batches(loop, program) else None
    key = dotted(divisor)
    bindings = loop.scope.bindings.get(key, ()) if key else ()
    added = [one for one in bindings if one.how == "augmented" and one.context.loop is loop and one.operator == "Add"]
    if len(added) != 1 or added[0].value is None or not all(_zero(one) for one in bindings if one is not added[0]):
        return None
    value = added[0].value
    if isinstance(value, ast.Constant):
        return False if value.value == 1 and _over_batches(loop, program) else None
    text = ast.unparse(value)
    return True if re.search(r"^len\(\w+\)$|\.size\(0\)$|\.shape\[0\]$", text) else None


def _over_batches(loop: Loop, program: Program) -> bool:
    """Return True if a loop is over batches, also of a function or a method with such a name."""
    call = None if isinstance(loop.node, ast.While) else program.call_at.get(loop.node.iter)
    return program.roles.over_batches(loop) or (call is not None and "batches" in call.method)


def _of_one(loop: Loop, program: Program) -> bool:
    """Return True if the batches of a loader have one sample each, by default or on purpose."""
    node = program.roles.over_loader(loop)
    if node is None or isinstance(node, Call):
        return False
    found = program.values.origin(node, Context(loop.scope, loop.parent, loop.guards), loop.first)[0]
    made = program.call_at.get(found)
    if made is None or made.name != "torch.utils.data.DataLoader":
        return False
    size = made.argument(1, "batch_size")
    return made.unpacks or size is None or program.values.constant(size, made.context, made.order) in (1, None)
