"""Layers and how they are built, from the syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Call, Kind, Program, Scope, Suspicion, dotted

_NORMS = re.compile(r"^torch\.nn\.(?:Lazy)?(?:BatchNorm[123]d|InstanceNorm[123]d|SyncBatchNorm)$")
_CONSTANTS = ("torch.nn.init.constant_", "torch.nn.init.zeros_", "torch.nn.init.ones_")


def layer_setting_out_of_range(program: Program) -> Iterator[Suspicion]:
    """Yield layers with a setting that no training uses."""
    for call in program.starting("torch.nn."):
        if call.unpacks:
            continue
        wrong = _setting(call, program)
        if wrong:
            yield Suspicion(
                call.node,
                f"`{call.method}` has {wrong}",
                "a setting that no training uses",
                "pass the setting that is meant by its name",
            )


def _setting(call: Call, program: Program) -> str:
    """Return the setting of a layer that is out of range, as text; "" without one."""

    def value(position: int, name: str) -> object:
        return program.values.constant(call.argument(position, name), call.context, call.order)

    if _NORMS.match(call.name):
        eps, momentum = value(1, "eps"), value(2, "momentum")
        second = call.node.args[1] if len(call.node.args) > 1 else None
        if second is not None and ast.unparse(second) == ast.unparse(call.node.args[0]):
            return f"an `eps` of `{ast.unparse(second)}`: its second argument is not a size"
        if isinstance(eps, int | float) and not isinstance(eps, bool) and eps >= 0.1:
            return f"an `eps` of {eps}"
        if isinstance(momentum, float) and (momentum < 0 or momentum > 1 or 0.99 <= momentum < 1):
            return f"a `momentum` of {momentum}, which is the weight of the new batch"
    elif re.match(r"^torch\.nn\.\w*Dropout\w*$", call.name):
        rate = value(0, "p")
        if rate == 1 and not isinstance(rate, bool):
            return "a `p` of 1, which drops everything"
    elif call.name == "torch.nn.LeakyReLU":
        slope = value(0, "negative_slope")
        if isinstance(slope, int | float) and not isinstance(slope, bool) and slope >= 1:
            return f"a `negative_slope` of {slope}"
    return ""


def layers_without_activation(program: Program) -> Iterator[Suspicion]:
    """Yield two linear layers in a row, in a `Sequential` or in `forward`."""
    for call in program.named("torch.nn.Sequential"):
        for first, then in zip(call.node.args, call.node.args[1:], strict=False):
            one, other = _linear(first, call, program), _linear(then, call, program)
            if one is not None and other is not None and _no_bottleneck(one, other, program) and _runs(call, program):
                yield _in_a_row(other.node, one.node, _as_mistake(call.scope, call, program))
    for owner in program.models.classes():
        forward = owner.inner.get("forward")
        for call in [] if forward is None else forward.calls:
            before = _input(call, program)
            if before is None or forward is None:
                continue
            one, other = _linear(before.node.func, before, program), _linear(call.node.func, call, program)
            if one is not None and other is not None and one is not other and _no_bottleneck(one, other, program):
                yield _in_a_row(call.node, before.node, _as_mistake(forward, None, program))


_ACTIVATION = re.compile(
    r"^(?:\w*ReLU\d?|relu6?|\w*[eE]LU|gelu|silu|SiLU|Mish|[sS]igmoid|[tT]anh|[lL]eaky\w*|elu|selu)$"
)


def _as_mistake(scope: Scope, made: Call | None, program: Program) -> Confidence:
    """Return how certain it is that an activation is missing: models without any are often linear on purpose."""
    owner = scope.owner
    scopes = [scope] if owner is None else program.inside(owner)
    if made is None or owner is not None:
        calls = [call for each in scopes for call in each.calls]
    else:
        calls = [call for part in ast.walk(made.node) if (call := program.call_at.get(part)) is not None]
    if any(_ACTIVATION.match(call.method) for call in calls):
        return Confidence.HIGH
    classified = program.named("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss")
    trained = any(loop.of(Act.BACKWARD) for loop in program.roles.trainings())
    return Confidence.MEDIUM if classified and trained and len(list(program.classes())) <= 3 else Confidence.LOW


def _runs(made: Call, program: Program) -> bool:
    """Return True if the file calls a model, or builds it inside a class or another model."""
    statement = made.statement
    if made.scope.kind == "function" or not isinstance(statement, ast.Assign) or statement.value is not made.node:
        return True
    key = dotted(statement.targets[0])
    return any(dotted(call.node.func) == key for call in program.calls)


def _in_a_row(node: ast.AST, before: ast.AST, confidence: Confidence) -> Suspicion:
    return Suspicion(
        node,
        "two linear layers follow one another without an activation, and compute no more than one",
        "comes right after another linear layer",
        "put an activation between the two layers",
        ((before, "the layer before"),),
        confidence,
    )


def _linear(node: ast.expr, around: Call, program: Program) -> Call | None:
    found = program.call_at.get(program.values.origin(node, around.context, around.order)[0])
    return found if found is not None and found.name == "torch.nn.Linear" and not found.unpacks else None


def _input(call: Call, program: Program) -> Call | None:
    """Return the call that makes the input of a layer, if nothing else reads it."""
    if not isinstance(call.node.func, ast.Attribute) or call.key != "self" or len(call.node.args) != 1:
        return None
    value = call.node.args[0]
    key = dotted(value)
    if key:
        one = program.values.only(key, call.context, call.order)
        if one is None or one.how != "=" or one.index or one.context.guards != call.context.guards:
            return None
        later = [each.order for each in call.scope.bindings.get(key, ()) if each.order > one.order]
        last = min(later, default=10**9)
        if sum(one.order < order <= last for order, _ in call.scope.loads.get(key, ())) != 1:
            return None
    found = program.call_at.get(program.values.origin(value, call.context, call.order)[0])
    return found if found is not None and found.key == "self" else None


def _no_bottleneck(one: Call, other: Call, program: Program) -> bool:
    """Return True if the size between two layers is known, and not smaller than both ends."""

    def size(call: Call, position: int, name: str) -> object:
        return program.values.constant(call.argument(position, name), call.context, call.order)

    outer = (size(one, 0, "in_features"), size(other, 1, "out_features"))
    inner = size(one, 1, "out_features")
    if not isinstance(inner, int) or not all(isinstance(each, int) for each in outer):
        return False
    return inner >= min(each for each in outer if isinstance(each, int))


def symmetric_initialisation(program: Program) -> Iterator[Suspicion]:
    """Yield weights of all linear layers that are set to one value."""
    for call in program.named(*_CONSTANTS):
        value = call.argument(0, "tensor")
        key = "" if value is None else dotted(value)
        model = _all_parameters(key, call)
        if model and not _runs_frozen(model, program):
            yield Suspicion(
                call.node,
                f"all parameters of `{model}` begin with one value, and its units stay equal",
                "gives every unit the same weights",
                "use a random initialisation, such as `nn.init.kaiming_uniform_`",
            )
        if not key.endswith(".weight") or not _all_layers(key.removesuffix(".weight"), call, program):
            continue
        yield Suspicion(
            call.node,
            "the weights of all linear layers begin with one value, and their units stay equal",
            "gives every unit the same weights",
            "use a random initialisation, such as `nn.init.kaiming_uniform_`",
        )


def _all_parameters(name: str, call: Call) -> str:
    """Return the model if a name goes through its parameters; "" for other names, and under a condition."""
    bindings = call.scope.bindings.get(name, [])
    if not name or call.context.guards:
        return ""
    for one in bindings:
        if one.how == "for" and one.value is not None and not one.index and one.order < call.order:
            match = re.match(r"^([\w.]+)\.parameters\(\)$", ast.unparse(one.value))
            inside = one.context.loop is call.loop or one.context.deferred
            if match is not None and inside:
                return match[1]
    return ""


def _runs_frozen(model: str, program: Program) -> bool:
    """Return True if a model gets other weights later, or no optimizer of this file trains it."""
    if any(call.key == model for call in program.method("load_state_dict", "apply")) or program.mentions(
        "requires_grad"
    ):
        return True
    return not any(
        re.search(rf"\b{re.escape(model)}\.parameters\(\)", ast.unparse(call.node))
        for call in program.starting("torch.optim.")
    )


def _all_layers(name: str, call: Call, program: Program) -> bool:
    """Return True if a name goes through all linear or convolution layers of a model."""
    bindings = call.scope.bindings.get(name, [])
    if len(bindings) != 1:
        return False
    one = bindings[0]
    tests = [ast.unparse(guard.node.test) for guard in call.context.guards if isinstance(guard.node, ast.If)]
    if any(guard.branch != 0 for guard in call.context.guards):
        tests = [test for test in tests if "isinstance" in test]
    kinds = [test for test in tests if re.match(r"^isinstance\(\w+, ", test)]
    direct = [guard for guard in call.context.guards if guard.branch == 0]
    if one.how == "for" and isinstance(one.value, ast.Tuple):
        parts = [dotted(part.value) for part in one.value.elts if isinstance(part, ast.Subscript)]
        return len(parts) == len(one.value.elts) > 1 and len(set(parts)) == 1 and not call.context.guards
    if len(kinds) != 1 or len(direct) != 1 or "Norm" in kinds[0] or not re.search(r"\b(?:Linear|Conv\dd)\b", kinds[0]):
        return False
    if one.how == "parameter":
        return any(dotted(part) == call.scope.name for other in program.method("apply") for part in other.node.args)
    return one.how == "for" and one.value is not None and "modules()" in ast.unparse(one.value)


def softmax_wrong_dim(program: Program) -> Iterator[Suspicion]:
    """Yield softmaxes behind a linear layer of a `Sequential` that run over the batch or over one class."""
    for call in program.named("torch.nn.Sequential"):
        if len(call.node.args) < 2:
            continue
        before = _linear(call.node.args[-2], call, program)
        last = program.call_at.get(program.values.origin(call.node.args[-1], call.context, call.order)[0])
        if before is None or last is None or last.name not in ("torch.nn.Softmax", "torch.nn.LogSoftmax"):
            continue
        dim = program.values.constant(last.argument(0, "dim"), last.context, last.order)
        classes = program.values.constant(before.argument(1, "out_features"), before.context, before.order)
        if dim == 0 and dim is not False and _in_loss(call, program):
            yield Suspicion(
                _in_loss(call, program) or last.node,
                "the softmax runs over the samples of a batch, not over the classes",
                "gets a softmax over the batch",
                "use `dim=1`",
                ((last.node, "runs over the batch"),),
            )
        elif classes == 1 and dim in (1, -1):
            yield Suspicion(
                last.node,
                "the softmax runs over a single class, and is always 1",
                "runs over one output",
                "use a sigmoid, or one output for each class",
                ((before.node, "has one output"),),
            )


def _in_loss(made: Call, program: Program) -> ast.expr | None:
    """Return the loss that gets the result of a model."""
    for call in program.calls:
        if not call.node.args or not program.kinds.is_a(call.node.func, Kind.LOSS, call.context, call.order):
            continue
        value = program.values.origin(call.node.args[0], call.context, call.order)[0]
        forward = program.call_at.get(value)
        if forward is None:
            continue
        if program.values.origin(forward.node.func, forward.context, forward.order)[0] is made.node:
            return call.node
    return None
