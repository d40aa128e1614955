"""Models that a file defines: their layers, and the last operation of their `forward`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from truestep.syntax.names import dotted
from truestep.syntax.places import Call, Context, Scope
from truestep.syntax.values import argument

if TYPE_CHECKING:
    from truestep.syntax.program import Program

_MODULES = re.compile(r"^(?:torch\.nn\.(?:Module|Sequential)|lightning\.(?:pytorch\.)?LightningModule)$")
_ACTIVATIONS = {
    "softmax": "softmax", "softmin": "softmax", "Softmax": "softmax", "Softmax2d": "softmax",
    "log_softmax": "log_softmax", "LogSoftmax": "log_softmax",
    "sigmoid": "sigmoid", "Sigmoid": "sigmoid", "sigmoid_": "sigmoid", "logsigmoid": "log_sigmoid",
    "LogSigmoid": "log_sigmoid",
    "relu": "relu", "ReLU": "relu", "relu_": "relu", "tanh": "tanh", "Tanh": "tanh", "exp": "exp", "log": "log",
    "Linear": "linear", "Conv2d": "linear", "Conv1d": "linear", "LazyLinear": "linear", "linear": "linear",
}  # fmt: skip
_SHAPES = {
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "permute", "transpose", "contiguous", "float", "double",
    "to", "cpu", "cuda", "clone", "t", "type", "half",
}  # fmt: skip
"""Methods that change no value."""
_RATES = {"Transformer": (5, "LayerNorm"), "TransformerEncoderLayer": (3, "LayerNorm"),
          "TransformerDecoderLayer": (3, "LayerNorm")}  # fmt: skip
"""Layers with dropout: place of its rate, and a layer in it that remains without it."""
_DEEPEST = 8


class Models:
    """Answers questions on the classes of modules of one file, and on the modules that it builds."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._is_model: dict[Scope, bool] = {}

    def is_model(self, owner: Scope) -> bool:
        """Return True if a class of this file is a module of torch."""
        known = self._is_model.get(owner)
        if known is None:
            self._is_model[owner] = False
            known = any(
                _MODULES.match(base) or (base.startswith("torch.nn.") and base.removeprefix("torch.nn.")[:1].isupper())
                for base in self._program.bases(owner)
            )
            self._is_model[owner] = known
        return known

    def classes(self) -> Iterator[Scope]:
        """Yield the classes of modules of this file."""
        return (scope for scope in self._program.classes() if self.is_model(scope))

    def owner(self, node: ast.expr, context: Context, order: int) -> Scope | None:
        """Return the class of this file of which an expression is an object; it may be moved, compiled or wrapped."""
        for _ in range(_DEEPEST):
            node, context, order = self._program.values.origin(node, context, order)
            call = self._program.call_at.get(node)
            if call is None:
                return self._program.instance(node, context, order)
            made = self._program.definition(dotted(call.node.func), call.scope)
            if made is not None and made.kind == "class":
                return made
            inner = unwrapped(call)
            if inner is None:
                return None
            node, context, order = inner, call.context, call.order
        return None

    def layers(self, node: ast.expr, context: Context, order: int) -> set[str] | None:
        """Return the names of the classes of layers in a module, such as "Dropout"; None if some are unknown."""
        found: set[str] = set()
        return found if self._layers(node, context, order, found, 0) else None

    def collect(self, node: ast.expr, context: Context, order: int, found: set[str]) -> bool:
        """Add the names of the classes of layers in a module to a set, and return True if they are all known."""
        return self._layers(node, context, order, found, 0)

    def layers_of(self, owner: Scope) -> set[str] | None:
        """Return the names of the classes of layers in a module class of this file; None if some are unknown."""
        found: set[str] = set()
        return found if self._of_class(owner, found, 0) else None

    def _of_class(self, owner: Scope, found: set[str], depth: int) -> bool:
        known = not any(
            not _MODULES.match(base) and not base.startswith("torch.nn.") for base in self._program.bases(owner)
        )
        scopes = [scope for place in self._program.lineage(owner) for scope in self._program.inside(place)]
        if not any(scope.name.endswith(".__init__") for scope in scopes) and not found:
            known = known and bool(scopes)
        for scope in scopes:
            if scope.name.endswith(".forward"):
                continue
            for call in scope.calls:
                known = self._of_layer(call, found, depth) and known
        return known

    def _of_layer(self, call: Call, found: set[str], depth: int) -> bool:
        if call.name.startswith("torch.nn."):
            if call.name.removeprefix("torch.nn.")[:1].isupper():
                found.add(self._class_of(call))
            return True
        if call.name.startswith(("torchvision.models.", "timm.")):
            return False
        made = self._program.definition(call.method, call.scope) if not call.key else None
        if made is not None and made.kind == "class" and self.is_model(made):
            return depth < _DEEPEST and self._of_class(made, found, depth + 1)
        return True

    def _layers(self, node: ast.expr, context: Context, order: int, found: set[str], depth: int) -> bool:
        if depth > _DEEPEST:
            return False
        owner = self.owner(node, context, order)
        if owner is not None:
            return self.is_model(owner) and self._of_class(owner, found, depth + 1)
        value = self._program.values.origin(node, context, order)[0]
        call = self._program.call_at.get(value)
        if call is None:
            return False
        inner = unwrapped(call)
        if inner is not None and not call.name.startswith("torch.nn.Sequential"):
            return self._layers(inner, call.context, call.order, found, depth + 1)
        if not call.name.startswith("torch.nn."):
            return False
        found.add(self._class_of(call))
        known = True
        key = dotted(node)
        for other in self._program.method("append", "extend", "insert") if key else ():
            if other.key == key:
                known = False
                for part in other.node.args:
                    self._inside_of(part, other, found)
        if call.name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            for argument in call.node.args:
                if isinstance(argument, ast.Starred):
                    known = self._inside_of(argument.value, call, found) and known
                else:
                    known = self._layers(argument, call.context, call.order, found, depth + 1) and known
        return known

    def _inside_of(self, node: ast.expr, around: Call, found: set[str]) -> bool:
        value, _, _ = self._program.values.origin(node, around.context, around.order)
        inside = [self._program.call_at[one] for one in ast.walk(value) if one in self._program.call_at]
        for call in inside:
            if call.name.startswith("torch.nn."):
                found.add(self._class_of(call))
        return False

    def _class_of(self, call: Call) -> str:
        """Return the name of the class of a layer of torch; without dropout, that of a part of it which remains."""
        name = call.name.removeprefix("torch.nn.")
        place, remains = _RATES.get(name, (0, "Identity"))
        if name not in _RATES and "Dropout" not in name:
            return name
        rate = call.argument(place, "p" if "Dropout" in name else "dropout")
        return remains if self._program.values.constant(rate, call.context, call.order) in (0, 0.0) else name

    def last(self, node: ast.expr, context: Context, order: int, depth: int = 0) -> tuple[str, ast.expr] | None:
        """Return the last operation of an expression, such as "softmax", and its place; None if it is unknown."""
        if depth > _DEEPEST:
            return None
        node, context, order = self._program.values.origin(node, context, order)
        call = self._program.call_at.get(node)
        if call is None:
            return self._of_all(node, context, order, depth)
        method = call.method
        functional = call.name.startswith(("torch.nn.functional.", "torch.")) and not call.name.startswith("torch.nn.")
        if call.name.startswith("torch.nn.functional.") or functional:
            if call.name.count(".") <= 3 and method in _ACTIVATIONS and method[:1].islower():
                return _ACTIVATIONS[method], node
            if method in _SHAPES and call.node.args:
                return self.last(call.node.args[0], call.context, call.order, depth + 1)
            return None
        if isinstance(call.node.func, ast.Attribute) and not call.name and self._is_tensor_method(call):
            if method in _ACTIVATIONS and method[:1].islower():
                return _ACTIVATIONS[method], node
            if method in _SHAPES:
                return self.last(call.node.func.value, call.context, call.order, depth + 1)
        return self.output(call.node.func, call.context, call.order, depth + 1)

    def _of_all(self, node: ast.expr, context: Context, order: int, depth: int) -> tuple[str, ast.expr] | None:
        """Return the last operation of a name that has several values, if it is the same for all of them."""
        key = dotted(node)
        if not key:
            return None
        bindings = self._program.values.reaching(key, context, order) or []
        if [one.how for one in bindings] == ["parameter"]:
            owner = bindings[0].context.scope
            calls = self._program.calls_of(owner)
            passed = [(argument(call, owner, key), call) for call in calls]
            found = [
                None if value is None else self.last(value, call.context, call.order, depth + 1)
                for value, call in passed
            ]
        else:
            # A loop over layers makes the value in its passes; its input is seen only if there are none.
            made = [one for one in bindings if one.how != "parameter"]
            if len(made) != 1 or made[0].context.guards != context.guards or made[0].value is None or made[0].index:
                return None
            if made[0].how != "=":
                return None
            found = [self.last(made[0].value, made[0].context, made[0].order, depth + 1)]
        kinds = {one[0] if one is not None else None for one in found}
        return found[0] if len(kinds) == 1 else None

    def _is_tensor_method(self, call: Call) -> bool:
        receiver = call.receiver
        return receiver is not None and not (isinstance(receiver, ast.Name) and receiver.id in ("self", "cls", "super"))

    def output(self, node: ast.expr, context: Context, order: int, depth: int = 0) -> tuple[str, ast.expr] | None:
        """Return the last operation of a module that an expression is, and its place; None if it is unknown."""
        if depth > _DEEPEST:
            return None
        owner = self.owner(node, context, order)
        if owner is not None:
            return self._returned(owner, depth)
        value, _, _ = self._program.values.origin(node, context, order)
        call = self._program.call_at.get(value)
        if call is None:
            return None
        inner = unwrapped(call)
        if call.name == "torch.nn.Sequential":
            last = self._last_layer(node, call, context)
            return None if last is None else self.output(last, call.context, call.order, depth + 1)
        if inner is not None:
            return self.output(inner, call.context, call.order, depth + 1)
        if call.name.startswith("torch.nn."):
            kind = _ACTIVATIONS.get(call.name.removeprefix("torch.nn."))
            return None if kind is None else (kind, value)
        return None

    def _last_layer(self, node: ast.expr, made: Call, context: Context) -> ast.expr | None:
        """Return the last layer of a `Sequential`, also if it was appended later; None if it is unknown."""
        parts: list[ast.expr] = list(made.node.args)
        key = dotted(node)
        if key:
            for call in self._program.calls:
                if call.key != key or call.method not in ("append", "extend", "insert", "add_module", "pop"):
                    continue
                if call.method != "append" or len(call.node.args) != 1 or call.scope is not context.scope:
                    return None
                parts.append(call.node.args[0])
            if self._program.values.bindings(f"{key}[]", context.scope):
                return None
        return parts[-1] if parts and not isinstance(parts[-1], ast.Starred) else None

    def _returned(self, owner: Scope, depth: int) -> tuple[str, ast.expr] | None:
        forward = self._program.methods(owner, "forward") if self.is_model(owner) else None
        if forward is None:
            return None
        found = [self.last(value, context, order, depth + 1) for value, context, order in forward.returns]
        kinds = {one[0] if one is not None else None for one in found}
        return found[0] if len(kinds) == 1 else None


def unwrapped(call: Call) -> ast.expr | None:
    """Return the model that a call moves, compiles, copies or wraps; None for other calls."""
    if call.name in (
        "torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "copy.deepcopy",
        "torch.optim.swa_utils.AveragedModel", "torch.jit.script",
    ):  # fmt: skip
        return call.node.args[0] if call.node.args else None
    if not call.name and call.method in (
        "to",
        "cuda",
        "cpu",
        "train",
        "eval",
        "requires_grad_",
        "float",
        "double",
        "half",
    ):
        return call.receiver
    return None
