"""Losses that are divided or scaled for their step, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Call, Program, Suspicion, Training


def accumulation_not_normalised(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes of several batches for one step, if no loss is divided by their number."""
    for loop in program.roles.trainings():
        steps = loop.direct(Act.STEP)
        if loop.loop is None or len(steps) != 1 or len(loop.steps) != 1 or not program.roles.over_batches(loop.loop):
            continue
        step = loop.steps[0]
        window = _window(step.operation.guards[len(loop.loop.guards) :])
        passes = loop.direct(Act.BACKWARD)
        if window is None or len(passes) != 1 or passes[0].guards != loop.loop.guards or passes[0].via:
            continue
        clears = loop.direct(Act.CLEAR)
        if not clears or any(one.guards == loop.loop.guards for one in clears) or loop.reads_gradients():
            continue
        backward = passes[0].call
        adaptive = step.built is None or step.built.name != "torch.optim.SGD"
        if (
            backward is None
            or backward.receiver is None
            or backward.node.args
            or backward.node.keywords
            or _divided(backward, program)
            or (adaptive and not loop.of(Act.CLIP))
        ):
            continue
        yield Suspicion(
            backward.node,
            "the gradients of several batches are added for one step, and the loss is not divided by their number",
            "adds the gradient of a whole batch",
            f"divide the loss: `(loss / {window}).backward()`",
            ((step.node, f"steps once in `{window}` batches"),),
            Confidence.HIGH if step.sure else Confidence.MEDIUM,
        )


def _window(guards: tuple[tuple[ast.AST, int], ...]) -> str | None:
    """Return the text of the number of batches behind which a step comes."""
    if len(guards) != 1 or guards[0][1] != 0 or not isinstance(guards[0][0], ast.If):
        return None
    for node in ast.walk(guards[0][0].test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return ast.unparse(node.right)
    return None


def _divided(backward: Call, program: Program) -> bool:
    """Return True if anything about a loss is divided or multiplied, or is not in this function."""
    waiting: list[ast.AST] = [backward.node]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Mult):
                return True
            call = program.call_at.get(node)
            if call is not None and program.resolve(call) is not None:
                return True
            if isinstance(node, ast.keyword) and node.arg == "reduction":
                return True
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                for one in program.values.bindings(node.id, backward.scope):
                    if one.how == "augmented" and one.operator in ("Div", "Mult"):
                        return True
                    if one.how != "=" or one.value is None:
                        continue
                    made = isinstance(one.value, ast.Call) and "Loss" in ast.unparse(one.value.func)
                    if made or one.context.loop is backward.loop:
                        waiting.append(one.value)
    return False


def scaler_misused(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes without the scale before a step of the scaler, and steps around the scaler."""
    for loop in program.roles.trainings():
        steps, passes = loop.direct(Act.STEP), loop.direct(Act.BACKWARD)
        scaled = [one for one in passes if one.scaled]
        if len(steps) != 1 or not passes or loop.of(Act.UNKNOWN) or loop.reads_gradients():
            continue
        step = steps[0]
        plain = [one for one in passes if not one.scaled and one.guards == step.guards]
        if step.scaled and plain and not _by_hand(loop):
            yield Suspicion(
                plain[0].node,
                "the loss is not scaled, and the scaler divides its gradients by the scale",
                "adds gradients without the scale",
                f"scale the loss: `{_scaler(step.call)}.scale({plain[0].key or 'loss'}).backward()`",
                ((step.node, "divides the gradients by the scale"),),
            )
        elif not step.scaled and scaled and len(scaled) == len(passes) and not loop.of(Act.UNSCALE):
            yield Suspicion(
                step.node,
                "the optimizer steps on gradients that carry the scale",
                "does not divide by the scale",
                f"call `scaler.step({step.key or 'optimizer'})`",
                ((scaled[0].node, "scales the gradients"),),
                Confidence.MEDIUM,
            )


def _by_hand(loop: Training) -> bool:
    return any("get_scale" in key or ".scale" in key for one in loop.operations for key in one.context.scope.loads)


def _scaler(call: Call | None) -> str:
    return "scaler" if call is None or not call.key else call.key
