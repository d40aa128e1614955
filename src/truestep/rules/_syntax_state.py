"""States, copies and objects of a training, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Binding, Call, Kind, Program, Suspicion, dotted

_TYPOS = re.compile(r"\.(?:require_grad|requires_grads|require_grads|requires_gradient|requiers_grad|reqiures_grad)$")


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
        if not best and not first:
            continue
        yield Suspicion(
            call.node,
            f"`{key}` is kept without a copy, and changes with every later step",
            "holds the live weights",
            f"copy them: `copy.deepcopy({ast.unparse(call.node)})`",
            ((load.node, "loads the latest weights, not the kept ones"),),
            Confidence.HIGH if load.loop is None or load.loop is not call.loop else Confidence.MEDIUM,
        )


def _trains_in(call: Call, program: Program) -> bool:
    """Return True if the loop around a call takes steps."""
    assert call.loop is not None
    return any(one.act is Act.STEP for one in program.flow.of_loop(call.loop))


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


def freeze_without_effect(program: Program) -> Iterator[Suspicion]:
    """Yield attributes that were to freeze parameters: misspelt ones, and those of modules."""
    for scope in program.scopes:
        for key, bindings in scope.bindings.items():
            if not key.endswith("grad") and "grad" not in key.rpartition(".")[2]:
                continue
            for one in bindings:
                if one.how != "=" or not isinstance(one.value, ast.Constant) or one.value.value is not False:
                    continue
                if _TYPOS.search(key):
                    wrong = key.rpartition(".")[2]
                    yield Suspicion(
                        one.node,
                        f"`{wrong}` is not an attribute of parameters, and freezes nothing",
                        "has no effect",
                        "write `requires_grad`",
                    )
                elif key.endswith(".requires_grad") and _is_module(key.removesuffix(".requires_grad"), one, program):
                    owner = key.removesuffix(".requires_grad")
                    if _frozen_too(owner, program) or not _optimized(owner, one, program):
                        continue
                    yield Suspicion(
                        one.node,
                        f"`{owner}` is a module: its attribute `requires_grad` freezes nothing",
                        "has no effect on the parameters",
                        f"call `{owner}.requires_grad_(False)`",
                    )


def _frozen_too(owner: str, program: Program) -> bool:
    """Return True if the parameters of a module are frozen as well, or a class has its own `requires_grad`."""
    if any(call.key == owner for call in program.method("requires_grad_")):
        return True
    for scope in program.scopes:
        if "self.requires_grad" in scope.bindings or "requires_grad" in scope.inner:
            return True
        for key, bindings in scope.bindings.items():
            if key.endswith(".requires_grad") and "parameters" in "".join(
                ast.unparse(loop.node.iter)
                for one in bindings
                if (loop := one.context.loop) is not None and not isinstance(loop.node, ast.While)
            ):
                return True
    return False


def _optimized(owner: str, one: Binding, program: Program) -> bool:
    """Return True if a module is a part of another one, or is named where an optimizer or a model is built."""
    if "." in owner or any(each.how == "for" for each in program.values.bindings(owner, one.context.scope)):
        return True
    return any(
        re.search(rf"\b{re.escape(owner)}\b", ast.unparse(part))
        for call in program.calls
        if call.name.startswith(("torch.optim.", "torch.nn.Sequential"))
        for part in call.arguments()
    )


def _is_module(key: str, one: Binding, program: Program) -> bool:
    """Return True if a name is certainly a module."""
    bindings = program.values.reaching(key, one.context, one.order)
    if bindings is None:
        bindings = program.values.bindings(key, one.context.scope)
    for each in bindings:
        call = program.call_at.get(each.value) if each.how == "for" and each.value is not None else None
        if call is not None:
            pairs = {"named_children": (1,), "named_modules": (1,), "children": (), "modules": ()}
            if call.method not in pairs or each.index != pairs[call.method]:
                return False
        elif not _is_built(key, each, program):
            return False
    return bool(bindings)


def _is_built(key: str, one: Binding, program: Program) -> bool:
    if one.value is None or one.index:
        return False
    guess = program.kinds.of(one.value, one.context, one.order)
    return guess is not None and guess.kind is Kind.MODEL and guess.sure


def clip_wrong_parameters(program: Program) -> Iterator[Suspicion]:
    """Yield clips of a generator of parameters that the optimizer has read to its end."""
    for call in program.method("clip_grad_norm_", "clip_grad_value_"):
        value = call.argument(0, "parameters")
        key = "" if value is None else dotted(value)
        if value is None or not key:
            continue
        made = program.values.origin(value, call.context, call.order)[0]
        source = program.call_at.get(made)
        generator = isinstance(made, ast.GeneratorExp) or (
            source is not None and (source.method in ("parameters", "filter") and not source.name.startswith("torch"))
        )
        if not generator or (source is not None and source.loop is not None) or call.loop is None:
            continue
        yield Suspicion(
            call.node,
            f"`{key}` is a generator that is already read to its end: the clip gets no parameters",
            "clips nothing",
            f"keep the parameters in a list: `{key} = list(...)`",
            ((made, "can be read only once"),),
        )


def optimizer_rebuilt(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers with moments that the training loop builds again for each batch."""
    for training in program.roles.trainings():
        loop = training.loop
        if loop is None or not program.roles.over_batches(loop) or not training.of(Act.BACKWARD):
            continue
        for step in training.all_steps:
            built = step.built
            if built is None or not built.name.startswith("torch.optim."):
                continue
            if built.loop is not loop:
                continue
            value = built.argument(0, "params")
            momentum = built.argument(2, "momentum")
            if built.name == "torch.optim.SGD" and (
                momentum is None or (isinstance(momentum, ast.Constant) and not momentum.value)
            ):
                continue
            if value is None or built.context.guards != loop.guards or training.made_inside(value, built):
                continue
            yield Suspicion(
                built.node,
                "the optimizer is built again for every batch, and forgets its moments",
                "begins with empty moments",
                "build the optimizer before the loop",
                ((step.node, "its only step"),),
            )


def optimizer_holds_stale_parameters(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers that are built before a layer of their model is replaced, or on a copy that nothing holds."""
    yield from _of_copies(program)
    for call in program.calls:
        if not call.name.startswith("torch.optim.") or not call.node.args or call.loop is not None:
            continue
        value = call.node.args[0]
        if not (
            isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "parameters"
        ):
            continue
        model = dotted(value.func.value)
        if not model or model == "self":
            continue
        for key, bindings in call.scope.bindings.items():
            if not key.startswith(f"{model}.") and key != f"{model}[]":
                continue
            for one in bindings:
                if one.how != "=" or one.order < call.order or one.context.loop is not None or one.value is None:
                    continue
                made = program.call_at.get(one.value)
                if made is None or not re.match(r"^torch\.nn\.(?:Linear|Conv\dd|Sequential|Embedding)$", made.name):
                    continue
                if _rebuilt(call, one, program) or one.context.guards != call.context.guards:
                    continue
                yield Suspicion(
                    call.node,
                    f"the optimizer is built before `{key}` is replaced, and holds the old parameters",
                    "never updates the new layer",
                    "build the optimizer after the model is complete",
                    ((one.node, "replaces a layer"),),
                )


def _of_copies(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers that are built on a copy of a model which has no name."""
    for call in program.calls:
        if not re.match(r"^torch\.optim\.[A-Z]\w*$", call.name):
            continue
        value = program.call_at.get(call.node.args[0]) if call.node.args else None
        copied = None if value is None or value.method != "parameters" else program.call_at.get(value.receiver)  # type: ignore[arg-type]
        if copied is not None and copied.name in ("copy.deepcopy", "copy.copy") and copied.node.args:
            yield Suspicion(
                call.node,
                f"the optimizer holds a copy of `{ast.unparse(copied.node.args[0])}`, which no forward pass uses",
                "is built on a copy",
                f"pass the parameters of `{ast.unparse(copied.node.args[0])}` itself",
            )


def _rebuilt(call: Call, one: Binding, program: Program) -> bool:
    """Return True if another optimizer is built, or parameters are added, after a layer was replaced."""
    later = [other for other in call.scope.calls if other.order > one.order]
    return any(other.name.startswith("torch.optim.") or other.method == "add_param_group" for other in later)


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


def average_never_updated(program: Program) -> Iterator[Suspicion]:
    """Yield averages that are never updated, and loops over pairs of parameters that change nothing."""
    yield from _rebound(program)
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
    for loop in program.loops:
        if not isinstance(loop.node, ast.For) or not isinstance(loop.node.iter, ast.Call):
            continue
        call = program.call_at.get(loop.node.iter)
        if call is None or call.name != "zip" or len(call.node.args) != 2:
            continue
        if not all(re.search(r"\.(?:named_)?parameters\(\)$", ast.unparse(part)) for part in call.node.args):
            continue
        names = {
            key
            for key, ones in loop.scope.bindings.items()
            for one in ones
            if one.how == "for" and one.node is loop.node
        }
        body = loop.node.body
        if all(isinstance(one, ast.Assign) and dotted(one.targets[0]) in names for one in body):
            yield Suspicion(
                loop.node.iter,
                "the loop over the parameters gives its variables other values, and changes no parameter",
                "the loop over both models",
                "write into the parameter: `average.lerp_(weight, 1 - decay)`",
                ((body[0], "makes a new tensor"),),
            )
