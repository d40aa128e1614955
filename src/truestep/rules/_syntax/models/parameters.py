"""Parameters of models and the optimizers that hold them, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.rules._syntax.models.modules import is_layer
from truestep.syntax import Act, Binding, Call, Kind, Program, Scope, Suspicion, dotted, names_in

_TYPOS = re.compile(r"\.(?:require_grad|requires_grads|require_grads|requires_gradient|requiers_grad|reqiures_grad)$")


def freeze_without_effect(program: Program) -> Iterator[Suspicion]:
    """Yield attributes that were to freeze parameters: misspelt ones, and those of modules."""
    for key, _, bindings in program.attributes if "False" in program.text else ():
        if "grad" not in key.rpartition(".")[2]:
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
        for call in (*program.starting("torch.optim."), *program.starting("torch.nn.Sequential"))
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
    """Yield optimizers that are built before their model or a layer of it is replaced, or on one that has no name."""
    yield from _of_copies(program)
    yield from _of_other_models(program)
    for call in program.starting("torch.optim."):
        if not call.node.args or call.loop is not None:
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
    for call in program.optimizers:
        value = program.call_at.get(call.node.args[0]) if call.node.args else None
        copied = None if value is None or value.method != "parameters" else program.call_at.get(value.receiver)  # type: ignore[arg-type]
        if copied is not None and copied.name in ("copy.deepcopy", "copy.copy") and copied.node.args:
            yield Suspicion(
                call.node,
                f"the optimizer holds a copy of `{ast.unparse(copied.node.args[0])}`, which no forward pass uses",
                "is built on a copy",
                f"pass the parameters of `{ast.unparse(copied.node.args[0])}` itself",
            )


def _of_other_models(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers of a model without a name, and of a model that another one replaces before the first use."""
    stepped = {step.built for loop in program.roles.trainings() if loop.of(Act.BACKWARD) for step in loop.steps}
    for call in program.optimizers:
        value = call.argument(0, "params")
        function = value.func if isinstance(value, ast.Call) else None
        if not isinstance(function, ast.Attribute) or function.attr != "parameters":
            continue
        model = function.value
        if isinstance(model, ast.Call) and call in stepped and _is_new(model, program):
            yield Suspicion(
                call.node,
                f"the optimizer holds the parameters of a new `{ast.unparse(model.func)}`, which no forward pass uses",
                "is built on a model without a name",
                "pass the parameters of the model that is trained",
            )
        new = _replaced(dotted(model), call, program)
        if new is not None:
            yield Suspicion(
                call.node,
                f"the optimizer is built before `{new.key}` is a new model, and holds the parameters of the old one",
                "never updates the new model",
                "build the optimizer after the model",
                ((new.node, "makes a new model"),),
            )


def _is_new(node: ast.AST | None, program: Program) -> bool:
    """Return True if an expression makes a new model, of a class of this file or of torch."""
    call = program.call_at.get(node) if node is not None else None
    if call is None:
        return False
    made = program.definition(dotted(call.node.func), call.scope)
    if made is not None and made.kind == "class":
        return program.models.is_model(made)
    return bool(re.match(r"^torch\.nn\.(?:Linear|Conv\dd|Sequential|Embedding|LSTM|GRU)$", call.name))


def _replaced(model: str, call: Call, program: Program) -> Binding | None:
    """Return the assignment of a new model between an optimizer and its first use; None without one."""
    statement = call.statement
    key = dotted(statement.targets[0]) if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else ""
    if not model or "." in model or not key or "." in key or call.loop is not None:
        return None
    uses = [order for order, _ in call.scope.loads.get(key, ()) if order > call.order]
    for one in call.scope.bindings.get(model, ()):
        if one.how != "=" or one.index or one.order < call.order or one.context.guards != call.context.guards:
            continue
        if one.context.loop is not None or not uses or min(uses) < one.order or _rebuilt(call, one, program):
            continue
        if _is_new(one.value, program) and one.value is not None and model not in names_in(one.value):
            return one
    return None


def _rebuilt(call: Call, one: Binding, program: Program) -> bool:
    """Return True if another optimizer is built, or parameters are added, after a layer was replaced."""
    later = [other for other in call.scope.calls if other.order > one.order]
    return any(other in program.optimizers or other.method == "add_param_group" for other in later)


def parameters_not_optimized(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers that are built on some parts of a model, with no other optimizer and nothing frozen."""
    yield from _sliced(program)
    made = [call for call in program.starting("torch.optim.") if call.name.count(".") == 2]
    if len(made) != 1 or "requires_grad" in program.text or program.method("add_param_group", "freeze"):
        return
    call = made[0]
    value = call.argument(0, "params")
    if value is None:
        return
    parts = _parts(program.values.origin(value, call.context, call.order)[0])
    models = {part.rpartition(".")[0] for part in parts}
    if not parts or len(models) != 1:
        return
    model = models.pop()
    node = next((each for _, each in call.scope.loads.get(model, ())), None)
    node = node or ast.Name(model.partition(".")[0])
    owner = program.models.owner(node, call.context, call.order) if "." not in model else None
    if owner is None or not program.models.is_model(owner):
        return
    layers = {key.removeprefix("self.") for key in _layers(owner, program)}
    left = sorted(layers - {part.rpartition(".")[2] for part in parts})
    called = any(
        one.act is Act.FORWARD and one.key == model for loop in program.roles.trainings() for one in loop.operations
    )
    if not left or not called or any("detach" in ast.unparse(scope.node) for scope in program.inside(owner)):
        return
    yield Suspicion(
        call.node,
        f"the optimizer gets some parts of `{model}` only: `{left[0]}` is never trained",
        f"does not hold the parameters of `{left[0]}`",
        f"pass `{model}.parameters()`",
    )


def _sliced(program: Program) -> Iterator[Suspicion]:
    """Yield optimizers that get a slice of the parameters of a model, in files with no other optimizer."""
    made = program.optimizers
    for call in made:
        value = call.argument(0, "params")
        if not isinstance(value, ast.Subscript) or not isinstance(value.slice, ast.Slice):
            continue
        text = ast.unparse(value.value)
        match = re.match(r"^(?:list|tuple)\(([\w.]+)\.parameters\(\)\)$", text)
        if (
            match is None
            or sum(match[1] in ast.unparse(one.node) for one in made) > 1
            or "requires_grad" in program.text
        ):
            continue
        yield Suspicion(
            call.node,
            f"the optimizer gets a slice of the parameters of `{match[1]}`, and nothing trains the others",
            f"holds `{ast.unparse(value.slice)}` of the list",
            f"pass `{match[1]}.parameters()`",
        )


def _parts(node: ast.expr) -> list[str]:
    """Return the parts of a model, if an expression lists their parameters; empty if it lists anything else."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "parameters":
        key = dotted(node.func.value)
        return [key] if key.count(".") >= 1 and not key.startswith("self.") else []
    if isinstance(node, ast.Call) and dotted(node.func) == "list" and len(node.args) == 1:
        return _parts(node.args[0])
    if isinstance(node, ast.BinOp):
        left, right = _parts(node.left), _parts(node.right)
        return [*left, *right] if left and right else []
    if isinstance(node, ast.List):
        found = []
        for one in node.elts:
            inner = _parts(one.value) if isinstance(one, ast.Starred) else []
            if not inner:
                return []
            found += inner
        return found
    return []


def _layers(owner: Scope, program: Program) -> Iterator[str]:

    for scope in program.inside(owner):
        for key, bindings in scope.bindings.items():
            if key.startswith("self.") and key.count(".") == 1:
                if any(one.value is not None and not one.index and is_layer(one.value, program) for one in bindings):
                    yield key
