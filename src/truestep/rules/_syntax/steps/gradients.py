"""Gradients on or off, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Loop, Operation, Program, Scope, Suspicion


def no_grad_missing(program: Program) -> Iterator[Suspicion]:
    """Yield evaluation loops in eval mode that record graphs which no backward pass uses."""
    if not program.method("eval", "train"):
        return
    for loop in program.roles.evaluations():
        if program.roles.over_loader(loop) is None or _disabled(program):
            continue
        operations = program.flow.of_loop(loop)
        forwards = [one for one in operations if one.act is Act.FORWARD and one.loops[-1] is loop]
        if any(one.without_gradients for one in operations) or not forwards or _ends_early(loop):
            continue
        if _called_without(loop.scope, program):
            continue
        before = _mode_before(loop, forwards[0], program)
        if before is None or program.method("grad") or _reads_gradients(loop.scope):
            continue
        yield Suspicion(
            forwards[0].node,
            "the evaluation records a graph for every batch, which no backward pass uses",
            "tracks gradients",
            "put the loop under `with torch.no_grad():`",
            ((before.node, "sets eval mode"),),
            Confidence.HIGH if _sure(forwards[0], program) else Confidence.MEDIUM,
        )


def _ends_early(loop: Loop) -> bool:
    """Return True if a loop is left in its first pass, as to take one batch."""
    return any(isinstance(one, ast.Break | ast.Return) for one in loop.node.body)


def _called_without(scope: Scope, program: Program, depth: int = 0) -> bool:
    """Return True if a function is called with gradients off, also by the functions that call it."""
    if depth > 4:
        return False
    return any(
        call.context.without_gradients or (call.scope is not scope and _called_without(call.scope, program, depth + 1))
        for call in program.calls_of(scope)
    )


def _sure(one: Operation, program: Program) -> bool:
    guess = None if one.call is None else program.kinds.of(one.call.node.func, one.context, one.order)
    return guess is not None and guess.sure


def _disabled(program: Program) -> bool:
    """Return True if gradients are switched off in a way that has no block."""
    return bool(program.named("torch.set_grad_enabled")) or any(
        bool(program.method(name)) for name in ("requires_grad_", "stop_gradient")
    )


def _reads_gradients(scope: Scope) -> bool:
    return any(".grad" in key or "requires_grad" in key for key in (*scope.loads, *scope.bindings))


def _mode_before(loop: Loop, forward: Operation, program: Program) -> Operation | None:
    """Return the call that sets eval mode for an evaluation loop: in its function, or around it by a decorator."""
    found = None
    around = () if loop.parent is None else loop.parent.chain()
    for one in program.flow.operations(loop.scope):
        if loop in one.loops:
            break
        if one.act in (Act.TRAIN, Act.EVAL, Act.MODE) and one.key == forward.key:
            found = one if one.act is Act.EVAL and one.loops == around else None
    return found


def training_without_grad(program: Program) -> Iterator[Suspicion]:
    """Yield models that a training step calls with gradients disabled."""
    yield from _switched_off(program)
    for training in program.roles.steps():
        passes = training.of(Act.BACKWARD)
        forwards = training.of(Act.FORWARD)
        if not passes or not forwards:
            continue
        off = [one for one in passes if one.without_gradients]
        if len(off) != len(passes) or any(call.name == "torch.enable_grad" for one in passes for call in one.withs):
            continue
        yield Suspicion(
            forwards[0].node,
            "the training step runs with gradients disabled",
            "records no graph",
            "move the training step out of `torch.no_grad()`",
            ((passes[0].node, "has no graph to go through"),),
            Confidence.MEDIUM,
        )


def _switched_off(program: Program) -> Iterator[Suspicion]:
    """Yield the switch that turns gradients off for good, in a file with a training."""
    switches = program.named("torch.set_grad_enabled")
    if len(switches) != 1 or not switches[0].alone:
        return
    call = switches[0]
    mode = call.argument(0, "mode")
    if not isinstance(mode, ast.Constant) or mode.value is not False:
        return
    for loop in program.roles.trainings():
        forwards = loop.of(Act.FORWARD)
        if loop.of(Act.BACKWARD) and forwards and (call.scope.kind == "module" or program.calls_of(call.scope)):
            yield Suspicion(
                call.node,
                "gradients are switched off and never on again: the training goes on without them",
                "holds for the rest of the program",
                "use `with torch.no_grad():`, which ends with its block",
                ((forwards[0].node, "records no graph from then on"),),
                Confidence.MEDIUM if call.scope.kind == "module" else Confidence.HIGH,
            )
            return
