"""Seeds inside of loops, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.steps.repetitions import loop_of_repetitions
from truestep.syntax import Act, Call, Loop, Program, Scope, Suspicion, argument, evaluates, names_in

_OPTIMIZERS = "torch.optim."
_SEEDS = ("torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all")


def seed_in_training_loop(program: Program) -> Iterator[Suspicion]:
    """Yield seeds with the same value in every pass of a training loop."""
    for call in program.named(*_SEEDS):
        if not call.node.args or _changes(call.node.args[0], call, program):
            continue
        loop = _loop_around(call, program)
        if loop is None or any(one.method in ("set_rng_state", "fork_rng") for one in call.scope.calls):
            continue
        if evaluates(call.scope.name) or any(
            name.endswith(("no_grad", "inference_mode")) for name in call.scope.decorators
        ):
            continue
        operations = program.flow.of_loop(loop)
        trains = {one.act for one in operations} >= {Act.STEP, Act.BACKWARD}
        if not trains or _builds(loop, program):
            continue
        yield Suspicion(
            call.node,
            "the generator gets the same seed in every pass of the training loop, and repeats its random numbers",
            "draws the same numbers again",
            f"call `{ast.unparse(call.node)}` once, before the loop",
            ((loop.node.iter if not isinstance(loop.node, ast.While) else loop.node.test, "the loop"),),
        )


def same_trainings(program: Program) -> Iterator[Suspicion]:
    """Yield seeds with the same value before each of several trainings, over which a mean is taken."""
    for call in program.named(*_SEEDS[:2]):
        value = call.node.args[0] if call.node.args else None
        if value is None or call.context.guards or _varies(value, call, program):
            continue
        loop = loop_of_repetitions(program.tree, program.text, call.node.lineno)
        if loop is None or not any(one.name.startswith(_OPTIMIZERS) for one in _run_by(loop, program)):
            continue
        yield Suspicion(
            call.node,
            "the same seed is set before each of several trainings, and a mean is taken over them",
            "sets the same seed before each training",
            "set another seed for each training",
            ((loop, "repeats the training"),),
            Confidence.MEDIUM,
        )


def _run_by(loop: ast.AST, program: Program) -> Iterator[Call]:
    """Yield the calls in a loop, and those of the functions that it calls."""
    first: int = getattr(loop, "lineno", 0)
    last: int = getattr(loop, "end_lineno", first)
    waiting = [call for call in program.calls if first <= call.node.lineno <= last]
    seen: set[Scope] = set()
    while waiting:
        call = waiting.pop()
        yield call
        function = program.resolve(call)
        if function is not None and function not in seen:
            seen.add(function)
            waiting += function.calls


def _varies(value: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a seed may differ between the trainings; the entry of a configuration does not."""
    if isinstance(value, ast.Subscript | ast.Attribute):
        return not isinstance(value, ast.Attribute) and not isinstance(value.slice, ast.Constant)
    return _changes(value, call, program)


def _loop_around(call: Call, program: Program, depth: int = 0) -> Loop | None:
    """Return the loop around a call, or around the only calls of its function."""
    if call.loop is not None:
        return call.loop if call.context.guards == call.loop.guards else None
    if call.context.guards or depth > 2 or call.scope.kind != "function":
        return None
    loops = [_loop_around(one, program, depth + 1) for one in program.calls_of(call.scope)]
    return next((loop for loop in loops if loop is not None), None)


def _builds(loop: Loop, program: Program) -> bool:
    """Return True if a loop builds an optimizer, as one over folds or trials does."""
    waiting = [call for call in loop.scope.calls if call.loop is not None and call.loop.within(loop)]
    seen: set[Scope] = set()
    while waiting:
        call = waiting.pop()
        if call.name.startswith("torch.optim."):
            return True
        function = program.resolve(call)
        if function is not None and function not in seen:
            seen.add(function)
            waiting += function.calls
    for one in program.flow.of_loop(loop):
        if one.act is Act.STEP and one.call is not None:
            scope = one.context.scope
            made = scope.bindings.get(one.call.key.partition(".")[0], ())
            if scope is not loop.scope and any(each.how != "parameter" for each in made):
                return True
    return False


def _changes(value: ast.expr, call: Call, program: Program) -> bool:
    """Return True if a value may differ between the passes of the loops around a call."""
    if isinstance(value, ast.Constant):
        return False
    for name in names_in(value):
        bindings = program.values.bindings(name, call.scope)
        if not bindings or any(one.how in ("for", "augmented") or one.context.loop is not None for one in bindings):
            return True
        if any(one.how == "parameter" and not _default(name, one.context.scope, program) for one in bindings):
            return True
    return any(isinstance(node, ast.Call) for node in ast.walk(value))


def _default(name: str, function: Scope, program: Program) -> bool:
    """Return True if all calls of a function leave a parameter at its default, or pass a constant."""
    passed = [argument(call, function, name) for call in program.calls_of(function)]
    return bool(passed) and all(value is None or isinstance(value, ast.Constant) for value in passed)
