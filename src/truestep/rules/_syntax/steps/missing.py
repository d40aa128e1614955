"""Backward passes and steps of a training that are missing, repeated or useless, from the syntax."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.named import named_only
from truestep.syntax import Act, Call, Context, Kind, Loop, Program, Suspicion, dotted


def step_without_backward(program: Program) -> Iterator[Suspicion]:
    """Yield steps of training loops in files without any backward pass, and `backward` that is named only."""
    named = list(named_only(program, "no gradient is computed", "backward"))
    yield from named
    if named:
        return
    yield from _repeated_steps(program)
    yield from _second_steps(program)
    if program.mentions("backward") or any("backward" in name for name in program.methods_called()):
        return
    if program.method("grad") or program.mentions(".grad"):
        return
    for loop, step in program.roles.updates(in_loops=True):
        losses = loop.of(Act.FORWARD)
        if not step.sure or not losses or loop.left_to_others(step) or step.built is None:
            continue
        if not step.built.name.startswith("torch.optim."):
            continue
        yield Suspicion(
            step.node,
            "the optimizer steps without any backward pass",
            "has no gradients to use",
            f"call `loss.backward()` before `{ast.unparse(step.node)}`",
            ((losses[-1].node, "the forward pass"),),
        )
        return


def _repeated_steps(program: Program) -> Iterator[Suspicion]:
    """Yield steps that a loop inside the training loop repeats on the same gradients."""
    for loop in program.roles.trainings():
        node = None if loop.loop is None else loop.loop.node
        if loop.loop is None or loop.loop.parent is None or not isinstance(node, ast.For):
            continue
        times = node.iter
        if not isinstance(times, ast.Call) or dotted(times.func) != "range" or len(times.args) != 1:
            continue
        if loop.of(Act.BACKWARD, Act.UNKNOWN) or program.values.constant(
            times.args[0], _at(loop.loop), loop.loop.first
        ) in (0, 1):
            continue
        around = [one for one in program.flow.of_loop(loop.loop.parent) if one.act is Act.BACKWARD]
        for step in loop.steps:
            if around and step.sure and not step.guarded and not loop.reads_gradients():
                yield Suspicion(
                    step.node,
                    "the optimizer steps several times on the gradients of one backward pass",
                    "uses gradients that a step has already used",
                    "run a forward and a backward pass before each step",
                    ((around[0].node, "the only backward pass"),),
                )


def _second_steps(program: Program) -> Iterator[Suspicion]:
    """Yield steps right behind a step of the same optimizer."""
    for loop in program.roles.steps():
        for first, then in itertools.pairwise(loop.direct(Act.STEP)):
            if first.key != then.key or not first.key or first.guards != then.guards or first.scaled or then.via:
                continue
            if any(one.call is None or one.call.node.args for one in (first, then)) or not loop.of(Act.BACKWARD):
                continue
            between = loop.operations[loop.operations.index(first) + 1 : loop.operations.index(then)]
            sure = any(step.operation is then and step.sure for step in loop.steps)
            if (
                sure
                and not loop.reads_gradients()
                and not any(one.act in (Act.BACKWARD, Act.UNKNOWN) for one in between)
            ):
                yield Suspicion(
                    then.node,
                    "the optimizer steps twice on the gradients of one backward pass",
                    "uses gradients that a step has already used",
                    "remove one of the two steps",
                    ((first.node, "the first step"),),
                )


def backward_passes_discarded(program: Program) -> Iterator[Suspicion]:
    """Yield clears in the loop over batches of gradients that are used behind this loop only."""
    if not program.method("zero_grad") or not program.roles.trainings():
        return
    for outer in program.loops:
        operations = program.flow.of_loop(outer) if outer.scope in program.roles.reaching else []
        steps = [one for one in operations if one.act is Act.STEP and one.loops[-1] is outer and not one.via]
        if len(steps) != 1 or any(one.act is Act.UNKNOWN for one in operations):
            continue
        inner = [one for one in operations if one.loops[-2:-1] == (outer,) and one.act in (Act.CLEAR, Act.BACKWARD)]
        clears = [one for one in inner if one.act is Act.CLEAR and one.key == steps[0].key and not one.via]
        passes = [one for one in inner if one.act is Act.BACKWARD]
        if len(clears) != 1 or len(passes) != 1 or clears[0].loops[-1] is not passes[0].loops[-1]:
            continue
        loop = clears[0].loops[-1]
        if clears[0].guards != loop.guards or passes[0].guards != loop.guards or steps[0].order < loop.last:
            continue
        if isinstance(loop.node, ast.While) or any(isinstance(node, ast.Break) for node in ast.walk(loop.node)):
            continue
        if any(one.act is Act.BACKWARD and one not in passes for one in operations) or program.mentions(".grad"):
            continue
        yield Suspicion(
            clears[0].node,
            "the gradients of all batches but the last are cleared before the step",
            "clears them in every pass of the loop",
            f"move `{ast.unparse(steps[0].node)}` into the loop over the batches",
            ((steps[0].node, "steps once, behind the loop"), (passes[0].node, "computes the gradients")),
        )


def cleared_in_windows(program: Program) -> Iterator[Suspicion]:
    """Yield clears in each pass of a loop that steps in every so many passes only, as by ``if i % window == 0``."""
    if not program.method("zero_grad") or program.mentions(".grad"):
        return
    for loop in program.loops:
        operations = program.flow.of_loop(loop) if loop.scope in program.roles.reaching else []
        mine = [one for one in operations if one.loops[-1] is loop and not one.via]
        always = [one for one in mine if one.guards == loop.guards]
        steps, passes = ([one for one in mine if one.act is act] for act in (Act.STEP, Act.BACKWARD))
        if len(mine) != len(operations) or len(steps) != 1 or len(passes) != 1 or passes[0] not in always:
            continue
        clears = [one for one in always if one.act is Act.CLEAR and one.key == steps[0].key]
        windows = steps[0].guards[len(loop.guards) :]
        if len(clears) != 1 or len(windows) != 1 or not _is_window(windows[0].node):
            continue
        yield Suspicion(
            clears[0].node,
            "the gradients of all batches of a window but the last are cleared before the step",
            "clears them in every pass of the loop",
            f"clear them behind `{ast.unparse(steps[0].node)}` only",
            ((steps[0].node, "steps once for each window"), (passes[0].node, "computes the gradients")),
            Confidence.MEDIUM,
        )


def _is_window(node: ast.AST) -> bool:
    """Return True for a branch in every so many passes."""
    test = node.test if isinstance(node, ast.If) else None
    rests = (one for one in ast.walk(test) if isinstance(one, ast.BinOp)) if test is not None else ()
    return any(isinstance(one.op, ast.Mod) for one in rests)


def _at(loop: Loop) -> Context:
    return Context(loop.scope, loop.parent, loop.guards)


def backward_without_step(program: Program) -> Iterator[Suspicion]:
    """Yield backward passes for an optimizer of the file that is never stepped, and `step` that is named only."""
    yield from named_only(program, "the optimizer never steps", "step", Kind.OPTIMIZER)
    yield from _unused_optimizers(program)
    for call in program.optimizers:
        statement = call.statement
        if not isinstance(statement, ast.Assign) or statement.value is not call.node or len(statement.targets) != 1:
            continue
        key = dotted(statement.targets[0])
        clears = _only_cleared(key, program)
        if not clears or program.mentions(".grad") or program.method("grad"):
            continue
        passes = [one for one in program.method("backward") if one.receiver is not None and one.loop is clears[0].loop]
        if passes:
            yield Suspicion(
                passes[0].node,
                f"`{key}` is never stepped: its gradients are computed, cleared and never used",
                "computes gradients that nothing uses",
                f"call `{key}.step()` after the backward pass",
                ((call.node, "is built, and never stepped"), (clears[0].node, "clears its gradients")),
            )


def _unused_optimizers(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers of functions with a backward pass that nothing reads after they are built."""
    for call in program.optimizers:
        statement, scope = call.statement, call.scope
        key = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else ""
        if scope.kind != "function" or not key or "." in key or getattr(statement, "value", None) is not call.node:
            continue
        inside = [scope, *program.inside(scope)]
        if key in scope.globals or any(key in one.loads for one in inside) or program.method("locals", "vars"):
            continue
        passes = [one for one in program.method("backward") if one.scope in inside and one.receiver is not None]
        if passes:
            yield Suspicion(
                passes[0].node,
                f"`{key}` is built and never used: no step uses the gradients",
                "computes gradients that nothing uses",
                f"call `{key}.step()` after the backward pass",
                ((call.node, "is built, and nothing reads it"),),
                Confidence.MEDIUM,
            )


def _only_cleared(key: str, program: Program) -> list[Call]:
    """Return the calls that clear the gradients of an optimizer, if the file does nothing else with it."""
    name = key.rpartition(".")[2]
    clears = [
        call for call in program.method("zero_grad") if call.key.rpartition(".")[2] == name and call.loop is not None
    ]
    receivers = {call.receiver for call in clears}
    for scope in program.scopes:
        for text, uses in scope.loads.items():
            if name in text.split(".") and any(node not in receivers for _, node in uses):
                return []
    return clears if name else []


def loss_differentiated_twice(program: Program) -> Iterator[Suspicion]:
    """Yield second backward passes of one loss, with nothing between that clears the gradients of the first."""
    passes = [call for call in program.method("backward") if call.alone and call.key and call.context.loop is not None]
    for first, then in itertools.pairwise(passes):
        if first.key != then.key or first.scope is not then.scope or first.loop is not then.loop:
            continue
        if first.context.guards != then.context.guards or first.node.args or then.node.args:
            continue
        one, other = (program.values.only(call.key, call.context, call.order) for call in (first, then))
        if (
            one is None
            or one is not other
            or any(word.arg in ("inputs", "gradient") for call in (first, then) for word in call.node.keywords)
        ):
            continue
        between = [call for call in first.scope.calls if first.order < call.order < then.order]
        if any("zero_grad" in call.method or call.method in ("step", "grad", "zero_") for call in between):
            continue
        yield Suspicion(
            then.node,
            f"`{then.key}` is differentiated twice for one step, and its gradient counts twice",
            "adds the same gradient again",
            "remove one of the two backward passes",
            ((first.node, "the first backward pass"),),
        )


def anomaly_mode_left_on(program: Program) -> Iterator[Suspicion]:
    """Yield calls that switch anomaly detection on for the whole run."""
    for call in program.named("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"):
        mode = call.argument(0, "mode")
        on = isinstance(mode, ast.Constant) and mode.value is True
        if not on or not call.alone or call.context.guards or call.loop is not None:
            continue
        others = program.named("torch.autograd.set_detect_anomaly")
        if len(others) > 1 or not program.roles.trainings():
            continue
        yield Suspicion(
            call.node,
            "anomaly detection, a tool for finding a NaN, is on for the whole run",
            "slows down every backward pass",
            "remove the call once the NaN is found",
            confidence=Confidence.HIGH if call.scope.kind == "module" else Confidence.MEDIUM,
        )
