"""Order of clearing, backward passes, clips and steps in the syntax of a training loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.named import named_only
from truestep.syntax import Act, Call, Operation, Program, Step, Suspicion, Training, dotted, names_in

_LARGE = 1e6
"""From this limit on, a clip only serves to read the norm."""
_GRADIENTS = (Act.BACKWARD, Act.STEP, Act.UNKNOWN)


def missing_zero_grad(program: Program) -> Iterator[Suspicion]:
    """Yield steps in loops that compute gradients and never clear them."""
    named = list(named_only(program, "the gradients add up over the steps", "zero_grad"))
    yield from named
    if named:
        return
    for loop, step in program.roles.updates():
        backward = next(iter(loop.of(Act.ADD)), None) or loop.backward_before(step)
        if backward is None or loop.left_to_others(step) or loop.cleared_in_file(step):
            continue
        if _wraps(loop, step, backward):
            continue
        yield Suspicion(
            step.node,
            "the gradients are never cleared, and add up over the steps",
            "updates with the sum of all gradients so far",
            f"call `{step.optimizer}.zero_grad()` before {_shown(backward)}",
            ((backward.node, "adds to the gradients of earlier steps"),),
            _confidence(loop, step) if loop.loop is not None else _of_function(loop, step),
        )
    yield from _closures(program)


def _closures(program: Program) -> Iterator[Suspicion]:
    """Yield steps with a closure that computes gradients, in files that never clear any."""
    if program.method("zero_grad") or program.mentions("zero_grad") or program.mentions(".grad"):
        return
    for loop in program.roles.trainings():
        for step in loop.all_steps:
            call = step.operation.call
            closure = None if call is None or step.operation.scaled else call.argument(0, "closure")
            function = None if closure is None or call is None else program.definition(dotted(closure), call.scope)
            operations = [] if function is None else program.flow.operations(function)
            passes = [one for one in operations if one.act is Act.BACKWARD]
            if not passes or not step.sure or any(one.act in (Act.CLEAR, Act.UNKNOWN) for one in operations):
                continue
            if loop.cleared(step) or loop.left_to_others(step):
                continue
            yield Suspicion(
                passes[0].node,
                "the closure never clears the gradients, and they add up over its calls",
                "adds to the gradients of earlier calls",
                f"call `{step.optimizer}.zero_grad()` at the start of the closure",
                ((step.node, "calls the closure"),),
            )


def _wraps(loop: Training, step: Step, backward: Operation) -> bool:
    """Return True if a function gets the loss and the optimizer: its caller has the loop, and clears the gradients."""
    given = set(loop.scope.parameters) - {"self"}
    return loop.loop is None and step.optimizer in given and bool(given & set(names_in(backward.node)))


def zero_grad_once_per_epoch(program: Program) -> Iterator[Suspicion]:
    """Yield steps in a loop over batches if only the loop around it clears the gradients."""
    for loop, step in program.roles.updates(in_loops=True):
        backward = loop.backward_before(step)
        if backward is None or step.guarded or loop.left_to_others(step) or loop.cleared(step):
            continue
        clear = loop.cleared_around(step)
        if clear is None:
            continue
        assert loop.loop is not None
        batches = program.roles.over_batches(loop.loop)
        yield Suspicion(
            step.node,
            "the gradients are cleared once per epoch, and add up over its batches",
            "updates with the sum of the gradients of all batches so far",
            f"move `{ast.unparse(clear.node)}` into the loop over the batches",
            ((clear.node, "outside the loop over the batches"), (backward.node, "adds to the earlier gradients")),
            _confidence(loop, step) if batches else Confidence.MEDIUM,
        )


def zero_grad_before_step(program: Program) -> Iterator[Suspicion]:
    """Yield calls that clear gradients between the backward pass and the step."""
    for loop, step in program.roles.updates():
        for clear in loop.direct(Act.CLEAR) if not loop.reads_gradients() else ():
            if clear.call is None or not loop.same(clear, step):
                continue
            pairs = loop.nearest(clear, *_GRADIENTS)
            if not pairs or not all(_lost(before, behind, step, loop) for before, behind in pairs):
                continue
            backward = pairs[0][0] or loop.of(Act.BACKWARD)[-1]
            yield Suspicion(
                clear.node,
                "the gradients are cleared after the backward pass and before the step",
                "clears the gradients of the backward pass",
                f"move `{ast.unparse(clear.node)}` before `{ast.unparse(backward.node)}`",
                ((backward.node, "computes the gradients"), (step.node, "updates without them")),
                _confidence(loop, step),
            )


def _lost(before: Operation | None, behind: Operation | None, step: Step, loop: Training) -> bool:
    """Return True if the gradients that a step gets are cleared: those of this pass of the loop, or of the last one."""
    if behind is not step.operation:
        return False
    if before is not None:
        return before.act is Act.BACKWARD
    last = [one for one in loop.of(*_GRADIENTS) if one.guards == step.operation.guards]
    return loop.loop is not None and bool(last) and last[-1].act is Act.BACKWARD


def clip_after_step(program: Program) -> Iterator[Suspicion]:
    """Yield clips that follow the step, with no backward pass between the step and the clip."""
    for loop, step, clip in _clips(program):
        pairs = loop.nearest(clip, *_GRADIENTS)
        used = bool(pairs) and all(
            before is step.operation and (behind is None or behind.act is Act.BACKWARD) for before, behind in pairs
        )
        if used and not _other_clip(loop, clip):
            yield Suspicion(
                clip.node,
                "the gradients are clipped after the step that uses them",
                "has no effect",
                f"move the clip between the backward pass and `{ast.unparse(step.node)}`",
                ((step.node, "updates with gradients that are not clipped"),),
                _confidence(loop, step),
            )


def clip_before_backward(program: Program) -> Iterator[Suspicion]:
    """Yield clips before the backward pass that computes the gradients of the step."""
    for loop, step, clip in _clips(program):
        if step.guarded:
            continue
        pairs = loop.nearest(clip, *_GRADIENTS)
        early = bool(pairs) and all(
            before is None and behind is not None and behind.act is Act.BACKWARD for before, behind in pairs
        )
        backward = pairs[0][1] if early else None
        passes = loop.of(Act.BACKWARD)
        if backward is not None and len(passes) == 1 and not _other_clip(loop, clip):
            yield Suspicion(
                clip.node,
                "the gradients are clipped before the backward pass that computes them",
                "has no effect",
                f"move the clip between the backward pass and `{ast.unparse(step.node)}`",
                ((backward.node, "computes the gradients"),),
                _confidence(loop, step),
            )


def clip_before_unscale(program: Program) -> Iterator[Suspicion]:
    """Yield clips of gradients that a scaler has scaled and not unscaled."""
    for loop, step, clip in _clips(program):
        if not step.operation.scaled:
            continue
        pairs = loop.nearest(clip, Act.BACKWARD, Act.UNSCALE, Act.STEP, Act.UNKNOWN)
        scaled = bool(pairs) and all(
            before is not None and before.act is Act.BACKWARD and before.scaled for before, _ in pairs
        )
        if not scaled or _disabled(step, program):
            continue
        scaler = step.operation.call.key if step.operation.call is not None else "scaler"
        backward = pairs[0][0]
        assert backward is not None
        yield Suspicion(
            clip.node,
            "the gradients are clipped while they are scaled",
            "compares gradients times the scale with the limit",
            f"call `{scaler}.unscale_({step.optimizer})` before the clip",
            ((backward.node, "scales the gradients"),),
            Confidence.HIGH,
        )


def _clips(program: Program) -> Iterator[tuple[Training, Step, Operation]]:
    """Yield clips with a limit in training loops with one optimizer, and its step."""
    if not program.method("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"):
        return
    for loop in program.roles.steps():
        steps = loop.direct(Act.STEP)
        if len(steps) != 1 or len(loop.steps) != 1 or loop.reads_gradients():
            continue
        for clip in loop.direct(Act.CLIP):
            if clip.call is not None and _limits(clip.call, program):
                yield loop, loop.steps[0], clip


def _limits(call: Call, program: Program) -> bool:
    value = call.argument(1, "max_norm", "clip_value")
    limit = program.values.constant(value, call.context, call.order)
    if isinstance(limit, int | float):
        return limit < _LARGE
    text = "" if value is None else ast.unparse(value)
    return bool(text) and "inf" not in text and "scale" not in text


def _other_clip(loop: Training, clip: Operation) -> bool:
    return any(one is not clip for one in loop.of(Act.CLIP))


def _disabled(step: Step, program: Program) -> bool:
    call = step.operation.call
    if call is None or call.receiver is None:
        return False
    made = program.call_at.get(program.values.origin(call.receiver, call.context, call.order)[0])
    enabled = None if made is None else made.argument(-1, "enabled")
    return isinstance(enabled, ast.Constant) and not enabled.value


def _shown(backward: Operation) -> str:
    return f"`{ast.unparse(backward.node)}`" if backward.act is Act.BACKWARD else "the gradients are added"


def _of_function(loop: Training, step: Step) -> Confidence:
    """Return the confidence for a function that this file does not call: its caller may clear the gradients.

    A caller hardly does so for an optimizer that the object of a method has made for itself.
    """
    framework = loop.scope.name.endswith(".training_step")
    own = step.built is not None and step.optimizer.startswith("self.") and step.built.scope.owner is loop.scope.owner
    return Confidence.MEDIUM if framework or own else Confidence.LOW


def _confidence(loop: Training, step: Step) -> Confidence:
    return Confidence.HIGH if loop.sure(step) and loop.loop is not None else Confidence.MEDIUM
