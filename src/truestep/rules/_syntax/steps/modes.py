"""Train and eval mode, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.named import named_only
from truestep.syntax import NO_GRAD, Act, Kind, Loop, Operation, Program, Suspicion

_BY_MODE = re.compile(r"^(?:\w*Dropout\w*|BatchNorm\w*|LazyBatchNorm\w*|SyncBatchNorm|RReLU|Transformer(?:\w+Layer)?)$")


def eval_mode_missing(program: Program) -> Iterator[Suspicion]:
    """Yield evaluations without gradients of a model with dropout or batch norm that never is in eval mode."""
    yield from named_only(program, "the model stays in train mode", "eval", Kind.MODEL)
    if not program.named(*NO_GRAD) and not any(set(NO_GRAD) & set(scope.decorators) for scope in program.scopes):
        return
    if program.mentions(".training") or _sets_eval(program):
        return
    trained = {one.key for loop in program.roles.steps() for one in loop.of(Act.FORWARD) if not one.without_gradients}
    if not trained:
        return
    for scope in program.scopes:
        for one in program.flow.own(scope):
            if one.act is not Act.FORWARD or one.call is None or not one.context.without_gradients:
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
        operations = program.flow.of_loop(loop) if loop.scope in program.roles.reaching else []
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
    for training, forward in program.roles.direct(Act.FORWARD):
        operations = program.flow.operations(training.scope)
        place = operations.index(forward)
        modes = [one for one in operations[:place] if one.act is Act.EVAL and one.key == forward.key]
        trained = any(training.model(step) == forward.key for step in training.all_steps)
        if not modes or not trained or not training.of(Act.BACKWARD) or forward.without_gradients:
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
    forwards = [one for one in operations if one.act is Act.FORWARD and not one.without_gradients]
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
