"""Train and eval mode, and gradients on or off, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax_named import named_only
from truestep.syntax import Act, Kind, Loop, Operation, Program, Scope, Suspicion, Training

_BY_MODE = re.compile(r"^(?:\w*Dropout\w*|BatchNorm\w*|LazyBatchNorm\w*|SyncBatchNorm|RReLU|Transformer\w*)$")
_NO_GRAD = ("torch.no_grad", "torch.inference_mode")


def eval_mode_missing(program: Program) -> Iterator[Suspicion]:
    """Yield evaluations without gradients of a model with dropout or batch norm that never is in eval mode."""
    yield from named_only(program, "the model stays in train mode", "eval", Kind.MODEL)
    if not program.named(*_NO_GRAD) and not any(set(_NO_GRAD) & set(scope.decorators) for scope in program.scopes):
        return
    if program.mentions(".training") or _sets_eval(program):
        return
    trained = {one.key for loop in program.roles.steps() for one in loop.of(Act.FORWARD) if not _off(one, program)}
    if not trained:
        return
    for scope in program.scopes:
        for one in program.flow.own(scope):
            if one.act is not Act.FORWARD or one.call is None or not _off_here(one, program):
                continue
            if one.call.method == "train" or one.call.alone:
                continue
            names = _layers_by_mode(one, program)
            if not names or not _compared(one, program):
                continue
            yield Suspicion(
                one.node,
                f"the model is evaluated in train mode, with {_listed(names)} active",
                "no line of the file sets eval mode",
                f"call `{one.key}.eval()` before the evaluation, and `{one.key}.train()` before the training",
                confidence=Confidence.HIGH,
            )
            return


def _sets_eval(program: Program) -> bool:
    """Return True if anything in the file may set eval mode."""
    return bool(program.method("eval", "train_mode", "set_training")) or _switches(program)


def _switches(program: Program) -> bool:
    """Return True if a mode is set to a value that may be False."""
    modes = [call for call in program.method("train") if call.receiver is not None and program.resolve(call) is None]
    return any(call.node.args or call.node.keywords for call in modes)


def _compared(one: Operation, program: Program) -> bool:
    """Return True if the function around an evaluation makes a metric of the results."""
    scope = one.context.scope
    names = {call.method for call in scope.calls if _near(call.context.withs, one)}
    return bool(
        names & {"argmax", "max", "eq", "topk", "sum", "mean", "item", "accuracy_score", "append", "cpu"}
    ) or any(
        program.kinds.is_a(call.node.func, Kind.LOSS, call.context, call.order)
        for call in scope.calls
        if isinstance(call.node.func, ast.Name | ast.Attribute)
    )


def _near(withs: tuple[object, ...], one: Operation) -> bool:
    return any(each in one.context.withs for each in withs) or not one.context.withs


def _off(one: Operation, program: Program) -> bool:
    return any(call.name in _NO_GRAD for call in one.withs) or any(
        name in _NO_GRAD for name in one.context.scope.decorators
    )


def _off_here(one: Operation, program: Program) -> bool:
    return any(call.name in _NO_GRAD for call in one.context.withs) or any(
        name in _NO_GRAD for name in one.context.scope.decorators
    )


def _layers_by_mode(one: Operation, program: Program) -> list[str]:
    call = one.call
    if call is None:
        return []
    found: set[str] = set()
    program.models.collect(call.node.func, call.context, call.order, found)
    return sorted(name for name in found if _BY_MODE.match(name))


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:2]]
    return " and ".join(shown)


def train_mode_not_restored(program: Program) -> Iterator[Suspicion]:
    """Yield training forwards in a loop that sets eval mode behind them and never train mode."""
    yield from named_only(program, "the model stays in eval mode", "train", Kind.MODEL)
    yield from _always_in_eval(program)
    if not program.method("eval") or _switches(program) or not program.roles.trainings():
        return
    for loop in program.loops:
        operations = program.flow.of_loop(loop)
        acts = {one.act for one in operations}
        if Act.TRAIN in acts or not {Act.EVAL, Act.BACKWARD, Act.STEP, Act.FORWARD} <= acts:
            continue
        if any(one.act is Act.UNKNOWN and "self" in one.keys for one in operations):
            continue
        found = _left_in_eval(loop, operations, program)
        if found is not None:
            forward, mode = found
            yield Suspicion(
                forward.node,
                "the training goes on in eval mode after the first evaluation",
                "trains in eval mode from then on",
                f"call `{forward.key}.train()` before the training goes on",
                ((mode.node, "sets eval mode"),),
            )
            return


_LOADED = ("load_state_dict", "from_pretrained", "load", "create_model", "load_from_checkpoint")


def _always_in_eval(program: Program) -> Iterator[Suspicion]:
    """Yield trainings of a model of this file that is set to eval mode right before, and nowhere to train mode."""
    if not program.method("eval") or program.method("train", "train_mode", *_LOADED) or program.mentions(".training"):
        return
    for training in program.roles.trainings():
        operations = program.flow.operations(training.scope)
        for forward in training.direct(Act.FORWARD):
            place = operations.index(forward)
            modes = [one for one in operations[:place] if one.act is Act.EVAL and one.key == forward.key]
            trained = any(training.model(step) == forward.key for step in training.all_steps)
            if not modes or not trained or not training.of(Act.BACKWARD) or _off(forward, program):
                continue
            mode = modes[-1]
            around = training.loop is not None and mode.context.loop in (training.loop, training.loop.parent)
            if around and not mode.via and mode.guards == forward.guards[: len(mode.guards)]:
                if _layers_by_mode(forward, program):
                    yield Suspicion(
                        forward.node,
                        "the model is trained in eval mode",
                        "without dropout and batch statistics",
                        f"call `{forward.key}.train()` before the training",
                        ((mode.node, "sets eval mode"),),
                    )
                    return


def _left_in_eval(loop: Loop, operations: list[Operation], program: Program) -> tuple[Operation, Operation] | None:
    """Return the first training forward of a loop, and the call behind it that sets eval mode for good."""
    places = {one: place for place, one in enumerate(operations)}
    forwards = [one for one in operations if one.act is Act.FORWARD and not _off(one, program)]
    passes = [one for one in operations if one.act is Act.BACKWARD]
    for mode in operations:
        if mode.act is not Act.EVAL or _leaves(mode, loop):
            continue
        for forward in forwards:
            if forward.key != mode.key or places[forward] > places[mode] or not _layers_by_mode(forward, program):
                continue
            if any(places[forward] < places[one] < places[mode] for one in passes):
                return forward, mode
    return None


def _leaves(mode: Operation, loop: Loop) -> bool:
    """Return True if the loop ends behind an evaluation."""
    for guard in mode.guards[len(loop.guards) :]:
        body = getattr(guard.node, "body" if guard.branch == 0 else "orelse", None)
        if isinstance(body, list) and any(isinstance(one, ast.Break | ast.Return | ast.Raise) for one in body):
            return True
    return False


def no_grad_missing(program: Program) -> Iterator[Suspicion]:
    """Yield evaluation loops in eval mode that record graphs which no backward pass uses."""
    if not program.method("eval"):
        return
    for loop in program.roles.evaluations():
        if program.roles.over_loader(loop) is None or _disabled(program):
            continue
        operations = program.flow.of_loop(loop)
        forwards = [one for one in operations if one.act is Act.FORWARD and one.loops[-1] is loop]
        if any(_off(one, program) for one in operations) or not forwards:
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
    """Return the call that sets eval mode for an evaluation loop, in the same function."""
    found = None
    for one in program.flow.operations(loop.scope):
        if one.via or one.order > loop.first:
            continue
        if one.act in (Act.TRAIN, Act.EVAL) and one.key == forward.key:
            same = one.context.loop is loop.parent
            found = one if one.act is Act.EVAL and same else None
    return found


def training_without_grad(program: Program) -> Iterator[Suspicion]:
    """Yield models that a training step calls with gradients disabled."""
    yield from _switched_off(program)
    for training in program.roles.steps():
        passes = training.of(Act.BACKWARD)
        forwards = training.of(Act.FORWARD)
        if not passes or not forwards:
            continue
        off = [one for one in passes if any(call.name in _NO_GRAD for call in one.withs) or _decorated(one, training)]
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


def _decorated(one: Operation, training: Training) -> bool:
    return any(name in _NO_GRAD for name in one.context.scope.decorators)
