"""States, copies and averages of models, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.rules._syntax.models.averages import own_averages
from truestep.syntax import Act, Binding, Call, Kind, Loop, Program, Suspicion, dotted


def best_weights_aliased(program: Program) -> Iterator[Suspicion]:
    """Yield state dicts that are kept without a copy while the training goes on, and loaded later."""
    for call in program.method("state_dict"):
        statement = call.statement
        if (
            not isinstance(statement, ast.Assign)
            or statement.value is not call.node
            or call.node.args
            or call.node.keywords
        ):
            continue
        guess = program.kinds.receiver(call)
        if guess is None or guess.kind is not Kind.MODEL:
            continue
        key = dotted(statement.targets[0])
        load = next((one for one in program.method("load_state_dict") if _passes(one, key, call)), None)
        if load is None or not key or len(statement.targets) != 1 or load.key != call.key or _copied(key, program):
            continue
        seen = program.values.reaching(key, load.context, load.order)
        if seen and all(one.value is not call.node for one in seen):
            continue
        best = call.loop is not None and bool(call.context.guards) and _trains_in(call, program)
        uses = sum(len(scope.loads.get(key, ())) for scope in program.scopes)
        first = call.loop is None and load.loop is not None and uses == 1 and _trains_in(load, program)
        between = call.loop is None and load.loop is None and uses == 1 and _trained_between(call, load, program)
        if not best and not first and not between:
            continue
        yield Suspicion(
            call.node,
            f"`{key}` is kept without a copy, and changes with every later step",
            "holds the live weights",
            f"copy them: `copy.deepcopy({ast.unparse(call.node)})`",
            ((load.node, "loads the latest weights, not the kept ones"),),
            Confidence.HIGH if load.loop is None or load.loop is not call.loop else Confidence.MEDIUM,
        )


def tensors_aliased(program: Program) -> Iterator[Suspicion]:
    """Yield tensors without a graph that a branch for a best figure keeps without a copy, while steps go on."""
    for call in program.method("detach"):
        statement, guards = call.statement, call.context.guards
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or call.loop is None or not guards:
            continue
        value = statement.value
        kept = (
            value.elt if isinstance(value, ast.ListComp) else value.value if isinstance(value, ast.DictComp) else value
        )
        key = dotted(statement.targets[0])
        branch = guards[-1].node
        best = (
            isinstance(branch, ast.If) and isinstance(branch.test, ast.Compare) and "best" in ast.unparse(branch.test)
        )
        if kept is not call.node or not key or not best or not _trains_in(call, program) or _copied(key, program):
            continue
        if not any(scope.loads.get(key) for scope in program.scopes):
            continue
        yield Suspicion(
            statement,
            f"`{key}` is kept without a copy, and changes with every later step",
            "`detach()` returns the memory of the trained tensor",
            "copy each tensor: `.detach().clone()`",
        )


def _trains_in(call: Call, program: Program) -> bool:
    """Return True if the loop around a call takes steps."""
    assert call.loop is not None
    return any(one.act is Act.STEP for one in program.flow.of_loop(call.loop))


def _trained_between(call: Call, load: Call, program: Program) -> bool:
    """Return True if a loop between the two calls of one model trains it, and nothing assigns another model."""
    if call.scope is not load.scope or call.receiver is None or load.receiver is None or call.context.guards:
        return False
    values = program.values
    if values.identity(call.receiver, call.context, call.order) != values.identity(
        load.receiver, load.context, load.order
    ):
        return False
    return any(
        training.scope is call.scope
        and training.loop is not None
        and call.order < training.loop.first < load.order
        and any(one.key == call.key and not one.without_gradients for one in training.of(Act.FORWARD))
        for training in program.roles.trainings()
    )


def _passes(call: Call, key: str, kept: Call) -> bool:
    """Return True if a call loads the value that another one has kept, not another variable of the same name."""
    value = call.argument(0, "state_dict")
    if value is None or dotted(value) != key:
        return False
    return "." in key or call.scope.within(kept.scope) or key in kept.scope.globals


def _copied(key: str, program: Program) -> bool:
    """Return True if the value of a name is copied after it was assigned."""
    return any(
        key == dotted(part)
        for call in program.method("deepcopy", "copy", "clone", "items")
        for part in (*call.node.args, call.receiver or call.node)
    )


def state_not_loaded(program: Program) -> Iterator[Suspicion]:
    """Yield calls of `state_dict` with a result that is dropped."""
    for call in program.method("state_dict"):
        guess = program.kinds.receiver(call)
        if not call.alone or guess is None or guess.kind not in (Kind.MODEL, Kind.OPTIMIZER, Kind.SCHEDULER):
            continue
        passed = next(iter(call.arguments()), None)
        load = "" if passed is None else dotted(passed)
        if len(list(call.arguments())) > 1 or call.context.withs or call.scope.name.endswith("state_dict"):
            continue
        yield Suspicion(
            call.node,
            "`state_dict` is called and its result is dropped" if not load else f"`state_dict` overwrites `{load}`",
            "loads nothing",
            f"call `{call.key}.load_state_dict({load or 'state'})` to load a state",
            confidence=Confidence.HIGH if guess.sure or load else Confidence.LOW,
        )


def average_never_updated(program: Program) -> Iterator[Suspicion]:
    """Yield averages that are never updated, and loops over pairs of parameters that change nothing."""
    yield from _rebound(program)
    yield from own_averages(program)
    for call in program.named("torch.optim.swa_utils.AveragedModel"):
        statement = call.statement
        if (
            not isinstance(statement, ast.Assign)
            or program.method("update_parameters")
            or "update_parameters" in program.text
        ):
            continue
        key = dotted(statement.targets[0])
        if not key or not program.roles.trainings():
            continue
        passed = any(
            dotted(part) == key
            for other in program.calls
            for part in other.arguments()
            if not other.name.startswith("torch.")
        )
        if passed:
            continue
        yield Suspicion(
            call.node,
            f"the average `{key}` is never updated, and keeps the first weights",
            "is built, and never updated",
            f"call `{key}.update_parameters(...)` with the trained model after the steps",
        )


def _rebound(program: Program) -> Iterator[Suspicion]:
    """Yield loops over the parameters of two models that only give their variables other values."""
    for loop in program.loops if program.named("zip") else ():
        if not isinstance(loop.node, ast.For) or not isinstance(loop.node.iter, ast.Call):
            continue
        call = program.call_at.get(loop.node.iter)
        if call is None or call.name != "zip" or len(call.node.args) != 2:
            continue
        if not all(_WEIGHTS.search(ast.unparse(part)) for part in call.node.args):
            continue
        for ones in loop.scope.bindings.values():
            if not any(one.how == "for" and one.node is loop.node for one in ones):
                continue
            made = [one for one in ones if one.how == "=" and not one.index and one.context.loop is loop]
            lost = [one for one in made if one.key != "_" and not _read_later(one, loop)]
            if lost:
                yield Suspicion(
                    loop.node.iter,
                    "the loop over the parameters gives its variables other values, and changes no parameter",
                    "the loop over both models",
                    "write into the parameter: `average.lerp_(weight, 1 - decay)`",
                    ((lost[0].node, "makes a new tensor"),),
                )


def _read_later(one: Binding, loop: Loop) -> bool:
    """Return True if a loop reads a name behind an assignment, other than in another branch of a condition."""
    elsewhere = {
        node
        for guard in one.context.guards[len(loop.guards) :]
        if isinstance(guard.node, ast.If)
        for statement in (guard.node.orelse if guard.branch == 0 else guard.node.body)
        for node in ast.walk(statement)
    }
    uses = loop.scope.loads.get(one.key, ())
    return any(one.order < order <= loop.last and node not in elsewhere for order, node in uses)


_WEIGHTS = re.compile(r"\.(?:named_)?(?:parameters|buffers)\(\)$|\.state_dict\(\)\.(?:values|items)\(\)$")
_ROLE = re.compile(r"(?:^|_)(?:teacher|target|reference|ref|ema|frozen)(?:_|$)")


def reference_is_the_model(program: Program) -> Iterator[Suspicion]:
    """Yield second names of a model that say that it is another one."""
    if not program.roles.steps():
        return
    for scope in program.scopes:
        for key, bindings in scope.bindings.items():
            if len(bindings) != 1 or not _ROLE.search(key.rpartition(".")[2]):
                continue
            one = bindings[0]
            if one.how != "=" or one.value is None or one.index or not dotted(one.value) or dotted(one.value) == key:
                continue
            guess = program.kinds.of(one.value, one.context, one.order)
            if guess is None or guess.kind is not Kind.MODEL or not guess.sure or _ROLE.search(dotted(one.value)):
                continue
            switched = any(call.key == key for call in program.method("train"))
            if not switched and _called_without(key, one, program):
                yield Suspicion(
                    one.node,
                    f"`{key}` is `{dotted(one.value)}` itself, and changes with it",
                    "a second name, not a copy",
                    f"copy the model: `{key} = copy.deepcopy({dotted(one.value)})`",
                )


def _called_without(key: str, one: Binding, program: Program) -> bool:
    """Return True if a training loop calls a model without gradients under a name."""
    source = "" if one.value is None else dotted(one.value)
    for loop in program.roles.steps():
        forwards = loop.of(Act.FORWARD)
        off = [each for each in forwards if each.without_gradients]
        if any(each.key == key for each in off) and any(each.key == source for each in forwards):
            return True
    return False
