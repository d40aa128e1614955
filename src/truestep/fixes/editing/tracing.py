"""The last operation before a value: through names, shapes, layers of a model and `forward` of a class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import libcst as cst

from truestep.fixes.editing.edits import Edits
from truestep.fixes.editing.loops import calls
from truestep.fixes.editing.names import Names
from truestep.fixes.editing.program import Program, Uncertain, argument, dotted, only, receiver

_SHAPES = frozenset({
    "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "double", "to", "transpose", "permute", "contiguous",
    "t", "view_as", "reshape_as", "type_as", "cpu", "cuda", "clone",
})  # fmt: skip
"""Methods of tensors that keep the values."""
_DEEPEST = 12
"""Most names, calls and layers that are followed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """The operation that makes a value: a function or a method of a tensor, or a layer."""

    name: str
    """Name of the function, such as "softmax", or of the class, such as "Softmax"."""
    call: cst.Call
    """The call of the function, or the one that makes the layer."""
    undo: Callable[[Edits], None]
    """Removes the operation."""
    local: bool
    """True if only the value that was asked for changes without it, and no other reader of the model."""


class Tracer:
    """Follow a value back to the operation that makes it.

    Args:
        program: the file.
        names: its names.
        wanted: names of the operations that are looked for, functions and classes; others are not followed.
    """

    def __init__(self, program: Program, names: Names, wanted: frozenset[str]) -> None:
        self.program, self.names, self.wanted = program, names, wanted

    def last(self, node: cst.BaseExpression, *, local: bool = True, depth: int = 0) -> Operation:
        """Return the last operation of an expression.

        Raises:
            Uncertain: it is not one of the operations that are looked for, or not known.
        """
        if depth > _DEEPEST:
            raise Uncertain
        name = dotted(node)
        if name:
            value = self.names.value(name, node)
            return self.last(value, local=local and self._is_read_once(name, node), depth=depth + 1)
        if isinstance(node, cst.Subscript):
            return self.last(node.value, local=local, depth=depth + 1)
        if not isinstance(node, cst.Call):
            raise Uncertain
        if isinstance(node.func, cst.Attribute) and not self.names.full(node.func):
            called = node.func.attr.value
            if called in self.wanted and not dotted(node.func).startswith("self."):
                return self._function(node, called, node.func.value, local)
            if called in _SHAPES:
                return self.last(node.func.value, local=local, depth=depth + 1)
        full = self.names.full(node.func)
        called = full.rpartition(".")[2]
        if full.startswith("torch.") and called in self.wanted and node.args and called[0].islower():
            return self._function(node, called, node.args[0].value, local)
        if full.startswith("torch.") and called in _SHAPES and node.args:
            return self.last(node.args[0].value, local=local, depth=depth + 1)
        if full:
            raise Uncertain
        return self._model(node.func, node, depth + 1)

    def _function(self, call: cst.Call, name: str, inner: cst.BaseExpression, local: bool) -> Operation:
        return Operation(name, call, lambda edits: edits.replace(call, inner), local)

    def _model(self, model: cst.BaseExpression, call: cst.Call, depth: int) -> Operation:
        """Return the last operation of the model that a call calls."""
        if isinstance(model, cst.Call) and self._layer(model) in self.wanted:  # nn.Softmax(dim=1)(x)
            if len(call.args) != 1:
                raise Uncertain
            inner = call.args[0].value
            return Operation(self._layer(model), model, lambda edits: edits.replace(call, inner), True)
        made = self.names.made(model, call)
        if not isinstance(made, cst.Call):
            raise Uncertain
        name = self._layer(made)
        if name in self.wanted:  # self.softmax(x)
            if len(call.args) != 1:
                raise Uncertain
            inner = call.args[0].value
            return Operation(name, made, lambda edits: edits.replace(call, inner), False)
        if name == "Sequential":
            return self._sequential(made, model, depth)
        if name == "compile" and made.args:
            return self._model(made.args[0].value, call, depth + 1)
        kind = self.names.class_of(made)
        if kind is None or depth > _DEEPEST:
            raise Uncertain
        forward = only(node for node in self.program.walk(kind, cst.FunctionDef) if node.name.value == "forward")
        returned = only(self.program.here(forward, cst.Return))
        if returned.value is None:
            raise Uncertain
        return self.last(returned.value, local=False, depth=depth + 1)

    def _sequential(self, made: cst.Call, model: cst.BaseExpression, depth: int) -> Operation:
        appended = [
            call
            for call in calls(self.program, self.program.scope(made), "append")
            if dotted(receiver(call)) == dotted(model) != ""
        ]
        if appended:
            return self._appended(appended[-1])
        last = made.args[-1] if made.args else None
        if last is None or last.star or last.keyword is not None:
            raise Uncertain
        layer = last.value
        if isinstance(layer, cst.Call) and self._layer(layer) in self.wanted:
            return Operation(self._layer(layer), layer, lambda edits: edits.drop_argument(made, last), False)
        inner = self.names.made(layer, made)
        if isinstance(inner, cst.Call) and self._layer(inner) == "Sequential":
            return self._sequential(inner, layer, depth + 1)
        raise Uncertain

    def _appended(self, call: cst.Call) -> Operation:
        statement = self.program.statement(call)
        layer = call.args[0].value if len(call.args) == 1 else None
        alone = isinstance(statement, cst.Expr) and statement.value is call
        if not alone or not isinstance(layer, cst.Call) or self._layer(layer) not in self.wanted:
            raise Uncertain
        return Operation(self._layer(layer), layer, lambda edits: edits.remove(statement), False)

    def _layer(self, made: cst.Call) -> str:
        full = self.names.full(made.func)
        return full.rpartition(".")[2] if full.startswith("torch.") else ""

    def _is_read_once(self, name: str, near: cst.CSTNode) -> bool:
        scope = self.program.scope(near)
        reads = [
            node for node in self.program.walk(scope, cst.Name, cst.Attribute) if dotted(cast("cst.Name", node)) == name
        ]
        return len(reads) <= 2


def loss_input(call: cst.Call) -> cst.BaseExpression:
    """Return the predictions that a loss gets.

    Raises:
        Uncertain: the loss gets none, or only starred arguments.
    """
    passed = argument(call, 0, "input")
    if passed is None:
        raise Uncertain
    return passed.value


def loss_name(names: Names, call: cst.Call) -> tuple[str, cst.Call]:
    """Return the function or the class of a loss, and the call that has its settings: the loss itself, or its making.

    Raises:
        Uncertain: torch does not define it.
    """
    full = names.full(call.func)
    if full.startswith("torch."):
        return full.rpartition(".")[2], call
    made = names.made(call.func, call)
    full = names.full(made.func) if isinstance(made, cst.Call) else ""
    if not full.startswith("torch."):
        raise Uncertain
    return full.rpartition(".")[2], cast("cst.Call", made)
