"""Failures inside the classes of modules, from their syntax."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from truestep.findings import Confidence
from truestep.syntax import Act, Call, Kind, Program, Scope, Suspicion, dotted

_DROPOUTS = tuple(
    f"torch.nn.functional.{name}"
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)
_WITHOUT_PARAMETERS = re.compile(
    r"^(?:\w*ReLU\d*|ELU|SELU|CELU|GELU|SiLU|Mish|Sigmoid|Tanh|Softmax\w*|LogSoftmax|Softplus|Soft\w+|Hard\w+|GLU|"
    r"LogSigmoid|Tanhshrink|Threshold|Identity|Flatten|Unflatten|\w*Dropout\w*|\w*Pool\w*|Upsample\w*|\w*Pad\d?d?|"
    r"Pixel\w+|ChannelShuffle|Fold|Unfold|\w*Loss|CosineSimilarity|PairwiseDistance|Module\w*|Parameter\w*|Buffer)$"
)
_REGISTERED = re.compile(r"^(?:torch\.nn\.(?:ModuleList|ModuleDict|Sequential|ParameterList|ParameterDict))$")


def functional_dropout_always_on(program: Program) -> Iterator[Suspicion]:
    """Yield calls of dropout functions in modules that do not get the mode, and dropout layers made for one call."""
    for call in program.named(*_DROPOUTS):
        rate = program.values.constant(call.argument(1, "p"), call.context, call.order)
        if call.unpacks or call.argument(2, "training") is not None or rate in (0, 0.0):
            continue
        owner = call.scope.owner
        inside = owner is not None and program.models.is_model(owner)
        if _by_mode(call) or _as_noise(call, program):
            continue
        yield Suspicion(
            call.node,
            "dropout stays on in evaluation",
            "the function does not get the mode, and its default is `training=True`",
            "pass `training=self.training` to the dropout function" if inside else "pass the mode with `training=`",
            confidence=Confidence.HIGH if inside and not _sampled(program) else Confidence.LOW,
        )
    for call in program.named("torch.nn.functional.scaled_dot_product_attention"):
        value = call.argument(4, "dropout_p")
        rate = program.values.constant(value, call.context, call.order)
        if value is None or rate in (0, 0.0) or _reads_mode(call.scope) or not dotted(value).startswith("self."):
            continue
        yield Suspicion(
            call.node,
            "dropout stays on in evaluation",
            "the function does not get the mode, and drops attention weights",
            f"pass `dropout_p={dotted(value)} if self.training else 0.0`",
            confidence=Confidence.HIGH if not _sampled(program) else Confidence.LOW,
        )
    for call in program.calls if any("Dropout" in name for name in program.names()) else ():
        made = program.call_at.get(call.node.func)
        if made is None or not re.match(r"torch\.nn\.\w*Dropout\w*$", made.name):
            continue
        if program.values.constant(made.argument(0, "p"), made.context, made.order) in (0, 0.0):
            continue
        yield Suspicion(
            call.node,
            "dropout stays on in evaluation",
            "the dropout layer is made for the call, and begins in train mode",
            "create the dropout layer in `__init__`, so that it follows the mode of the model",
            confidence=Confidence.HIGH if call.scope.owner is not None and not _sampled(program) else Confidence.LOW,
        )


def _by_mode(call: Call) -> bool:
    """Return True if a condition around a call reads the mode."""
    return any("training" in ast.unparse(getattr(guard.node, "test", guard.node)) for guard in call.context.guards)


def _reads_mode(scope: Scope) -> bool:
    return any("training" in key for key in (*scope.loads, *scope.bindings))


def _as_noise(call: Call, program: Program) -> bool:
    """Return True if dropout corrupts the input of a module, or makes a mask: that is a part of the task."""
    value = call.argument(0, "input")
    if value is None:
        return False
    found = program.values.origin(value, call.context, call.order)[0]
    while isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute) and found.func.attr in _SHAPED:
        found = found.func.value
    if isinstance(found, ast.Name):
        bindings = call.scope.bindings.get(found.id, ())
        return bool(bindings) and all(one.how == "parameter" or one.node is call.statement for one in bindings)
    return isinstance(found, ast.Call) and dotted(found.func).rpartition(".")[2] in ("ones_like", "ones", "full")


def _sampled(program: Program) -> bool:
    """Return True if the file draws several predictions for one input, or passes the mode to other dropout."""
    for call in program.named(*_DROPOUTS):
        value = call.argument(2, "training")
        if isinstance(value, ast.Constant) and value.value:
            return True
    for loop in program.loops:
        if isinstance(loop.node, ast.For) and dotted(loop.node.target) in ("_", "sample", "_sample", "mc"):
            forwards = [one for one in program.flow.of_loop(loop) if one.act is Act.FORWARD and one.loops[-1] is loop]
            forwards = [one for one in forwards if not _grows(one.call, loop.node)]
            if forwards and not any(one.act is Act.BACKWARD for one in program.flow.of_loop(loop)):
                return True
    for call in program.named("torch.stack"):
        value = call.argument(0, "tensors")
        if isinstance(value, ast.ListComp) and "range(" in ast.unparse(value.generators[0].iter):
            return True
    return any(
        call.loop is not None and "parameters()" in ast.unparse(call.loop.node)
        for call in program.method("lerp_", "mul_")
    )


def _grows(call: Call | None, loop: ast.For) -> bool:
    """Return True if a loop stores the input of a call: it generates a sequence, parts of which are other inputs."""
    parts = () if call is None else call.node.args
    given = {one.id for part in parts for one in ast.walk(part) if isinstance(one, ast.Name)}
    return any(
        isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in given for one in ast.walk(loop)
    )


_SHAPED = ("flatten", "view", "reshape", "float", "squeeze")


def layers_in_plain_container(program: Program) -> Iterator[Suspicion]:
    """Yield lists and dicts of layers that a module keeps in a plain attribute and uses in its `forward`."""
    for owner in program.models.classes():
        scopes = program.inside(owner)
        for scope in scopes:
            for key, bindings in scope.bindings.items():
                if not key.startswith("self.") or key.count(".") != 1 or len(bindings) != 1:
                    continue
                binding = bindings[0]
                value = binding.value
                if binding.how != "=" or binding.index or value is None:
                    continue
                layers = _layers_in(value, program) or _appended(key, value, scopes, program)
                if layers is None or _registered(key, owner, program):
                    continue
                use = _use(key, owner, program)
                if use is None:
                    continue
                kind = "dict" if isinstance(value, ast.Dict | ast.DictComp) else "list"
                container = "nn.ModuleDict" if kind == "dict" else "nn.ModuleList"
                yield Suspicion(
                    use,
                    f"`{key}` is a plain {kind}, which does not register its layers: no optimizer trains them",
                    "runs layers that `parameters()` does not list",
                    f"put the layers of `{key}` into `{container}`",
                    ((value, "not registered"),),
                )


def _layers_in(value: ast.expr, program: Program) -> ast.expr | None:
    """Return a layer with parameters inside a list, a dict or a tuple."""
    match value:
        case ast.List() | ast.Tuple():
            parts = value.elts
        case ast.ListComp():
            parts = [value.elt]
        case ast.Dict():
            parts = value.values
        case ast.DictComp():
            parts = [value.value]
        case ast.GeneratorExp():
            parts = [value.elt]
        case ast.Call() if dotted(value.func) in ("list", "dict", "tuple") and len(value.args) == 1:
            return _layers_in(value.args[0], program)
        case _:
            return None
    for part in parts:
        if (found := part if is_layer(part, program) else _layers_in(part, program)) is not None:
            return found
    return None


def _appended(key: str, value: ast.expr, scopes: list[Scope], program: Program) -> ast.expr | None:
    if not isinstance(value, ast.List) or value.elts:
        return None
    for scope in scopes:
        for call in scope.calls:
            if call.key == key and call.method == "append" and call.node.args:
                added = call.node.args[0]
                found = program.values.origin(added, call.context, call.order)[0]
                if is_layer(found, program) and not isinstance(added, ast.Name):
                    return found
    return None


def is_layer(node: ast.expr, program: Program) -> bool:
    """Return True if an expression makes a layer with parameters: one of torch, or of a class of this file."""
    call = program.call_at.get(node)
    if call is None:
        return False
    if call.name.startswith("torch.nn."):
        rest = call.name.removeprefix("torch.nn.")
        if rest in ("Sequential", "ModuleList"):
            return any(is_layer(one, program) for one in call.node.args)
        plain = any(word.arg in ("elementwise_affine", "affine") for word in call.node.keywords)
        return rest.isidentifier() and rest[:1].isupper() and not _WITHOUT_PARAMETERS.match(rest) and not plain
    made = program.definition(dotted(call.node.func), call.scope)
    if made is None or made.kind != "class" or not program.models.is_model(made):
        return False
    layers = program.models.layers_of(made)
    return layers is not None and any(not _WITHOUT_PARAMETERS.match(one) for one in layers)


def _registered(key: str, owner: Scope, program: Program) -> bool:
    """Return True if the layers of an attribute may be registered at another place of the class."""
    name = key.removeprefix("self.")
    for scope in program.inside(owner):
        for call in scope.calls:
            if call.method in ("add_module", "register_module", "setattr", "register_parameter"):
                return True
            if _REGISTERED.match(call.name) or call.method in ("ModuleList", "Sequential", "ModuleDict"):
                if any(key in ast.unparse(one) for one in call.arguments()):
                    return True
            if call.method == "parameters" or call.method == "requires_grad_":
                if call.key != "self" and call.loop is not None and key in ast.unparse(call.loop.node):
                    return True
    outside = re.compile(rf"\.{re.escape(name)}\b")
    inside = {id(scope) for scope in program.inside(owner)}
    return any(
        outside.search(loaded) is not None
        for scope in program.scopes
        if id(scope) not in inside
        for loaded in scope.loads
        if not loaded.startswith("self.")
    )


def _use(key: str, owner: Scope, program: Program) -> ast.expr | None:
    """Return the call in `forward` that runs a layer of a container; without a `forward`, in another method."""
    forward = program.methods(owner, "forward")
    methods = _instead_of_forward(owner, program) if forward is None else [forward]
    return next((found for method in methods if (found := _use_in(method, key)) is not None), None)


def _instead_of_forward(owner: Scope, program: Program) -> list[Scope]:
    """Return the methods of a class without a `forward` that creates parameters, and no optimizer."""
    calls = [call.name for scope in program.inside(owner) for call in scope.calls]
    trained = "torch.nn.Parameter" in calls and not any(name.startswith("torch.optim.") for name in calls)
    methods = [one for one in owner.inner.values() if one.kind == "function" and not one.decorators]
    return [one for one in methods if trained and not one.name.endswith("__init__")]


def _use_in(method: Scope, key: str) -> ast.expr | None:
    names = {
        bound.key
        for bindings in method.bindings.values()
        for bound in bindings
        if bound.how == "for" and bound.value is not None and _mentions(bound.value, key)
    }
    for call in method.calls:
        function = call.node.func
        if isinstance(function, ast.Name) and function.id in names:
            return call.node
        if isinstance(function, ast.Subscript) and dotted(function.value) == key:
            return call.node
    return None


def _mentions(node: ast.expr, key: str) -> bool:
    return any(dotted(one) == key for one in ast.walk(node) if isinstance(one, ast.Attribute))


def layer_created_in_forward(program: Program) -> Iterator[Suspicion]:
    """Yield layers with parameters that `forward` makes and calls."""
    for owner in program.models.classes():
        forward = owner.inner.get("forward")
        if forward is None:
            continue
        called = [program.resolve(call) for call in forward.calls if call.key == "self"]
        helpers = [scope for scope in called if scope is not None and scope.owner is owner]
        for call in [*forward.calls, *(call for scope in helpers for call in scope.calls)]:
            if not is_layer(call.node, program) or call.context.deferred:
                continue
            run = _run(call, call.scope)
            if run is None:
                continue
            yield Suspicion(
                run,
                f"`forward` makes a new `{call.method}` with random weights in every call",
                "no optimizer trains this layer",
                f"create the layer in `__init__`, as `self.layer = {ast.unparse(call.node.func)}(...)`",
            )


def _run(call: Call, forward: Scope) -> ast.expr | None:
    """Return the call of a layer that `forward` has made, unless the layer is kept elsewhere."""
    for other in forward.calls:
        if other.node.func is call.node:
            return other.node
    statement = call.statement
    if not isinstance(statement, ast.Assign) or statement.value is not call.node or len(statement.targets) != 1:
        return None
    name = dotted(statement.targets[0])
    if not name or "." in name or len(forward.bindings.get(name, ())) != 1:
        return None
    uses = forward.loads.get(name, ())
    runs = [other.node for other in forward.calls if other.node.func in [node for _, node in uses]]
    return runs[0] if len(runs) == len(uses) and runs else None


_HOOKED = ("register_forward_hook", "register_forward_pre_hook", "weight_norm", "spectral_norm", "l1_unstructured")


def forward_called_directly(program: Program) -> Iterator[Suspicion]:
    """Yield calls of `model.forward`; only those of a program with hooks have an effect that is certain."""
    calls = [
        call for call in program.method("forward") if call.receiver is not None and call.key not in ("self", "cls")
    ]
    if not calls:
        return
    hooks = any(program.method(name) for name in _HOOKED)
    for call in calls:
        if isinstance(call.receiver, ast.Call) and dotted(call.receiver.func) == "super":
            continue
        guess = program.kinds.receiver(call)
        if guess is None or guess.kind is not Kind.MODEL or not guess.sure or not call.key:
            continue
        yield Suspicion(
            call.node,
            f"`{call.key}.forward` is called directly, which skips the hooks of the module",
            "runs no hooks",
            f"call `{call.key}(...)`",
            confidence=Confidence.MEDIUM if hooks else Confidence.LOW,
        )
