"""Losses that are kept together with their graphs, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import (
    Act,
    Binding,
    Call,
    Operation,
    Program,
    Suspicion,
    Training,
    argument,
    dotted,
    names_in,
    part_of,
)


def loss_kept_with_graph(program: Program) -> Iterator[Suspicion]:
    """Yield losses that a training loop adds to a total or a list together with their graphs."""
    for loop, backward in program.roles.direct(Act.BACKWARD):
        name = backward.key
        if not name or "." in name or backward.context.scope is not loop.scope:
            continue
        scope = loop.scope
        for bindings in scope.bindings.values():
            for one in bindings:
                same = one.context.loop is backward.context.loop and not _between(name, backward, one.order)
                if same and _adds(one, name) and _kept(one, loop, program):
                    yield _with_graph(one.node, name, one.key, backward.node)
        for call in scope.calls:
            if _between(name, backward, call.order):
                continue
            if call.method == "append" and call.loop is backward.context.loop and len(call.node.args) == 1:
                value = call.node.args[0]
                if isinstance(value, ast.Name) and value.id == name and _list_kept(call, loop, program):
                    yield _with_graph(call.node, name, call.key or "the list", backward.node)
            if call.loop is backward.context.loop and any(_is_name(one, name) for one in call.arguments()):
                kept = _kept_by_method(call, name, program)
                if kept is not None:
                    yield _with_graph(kept.node, name, kept.key, call.node)


def _between(name: str, backward: Operation, order: int) -> bool:
    """Return True if a name gets another value between a backward pass and a later or earlier place."""
    first, last = sorted((backward.order, order))
    return any(first < one.order < last for one in backward.context.scope.bindings.get(name, ()))


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _kept_by_method(call: Call, name: str, program: Program) -> Binding | None:
    """Return the line of a method of this file that adds its argument to a number of its object."""
    function = program.resolve(call)
    if function is None or function.owner is None or call.key in ("", "self"):
        return None
    names = [one for one in function.parameters if _is_name(argument(call, function, one) or call.node, name)]
    for key, bindings in function.bindings.items():
        for one in bindings:
            if not key.startswith("self.") or one.how != "augmented" or one.operator != "Add" or one.value is None:
                continue
            factors = [one.value.left, one.value.right] if isinstance(one.value, ast.BinOp) else [one.value]
            if any(_is_name(part, known) for part in factors for known in names):
                if all(len(function.bindings.get(known, ())) == 1 for known in names):
                    return one
    return None


def _adds(one: Binding, name: str) -> bool:
    """Return True if an assignment adds a loss to a total."""
    if one.key == name or "[" in one.key:
        return False
    if one.how == "augmented":
        return one.operator == "Add" and isinstance(one.value, ast.Name) and one.value.id == name
    value = one.value
    if one.how != "=" or not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return False
    parts = {part.id for part in (value.left, value.right) if isinstance(part, ast.Name)}
    return parts == {one.key, name}


def _kept(one: Binding, loop: Training, program: Program) -> bool:
    """Return True if a total begins at zero before the loop, and no backward pass begins from it."""
    starts = [
        each for each in program.values.bindings(one.key, loop.scope) if each.how == "=" and each.node is not one.node
    ]
    if not starts or not all(isinstance(part_of(each), ast.Constant) for each in starts):
        return False
    if any(loop.around(each.context) for each in starts):
        return False
    return not _differentiated(one.key, loop, program)


def _list_kept(call: Call, loop: Training, program: Program) -> bool:
    """Return True if a list is made before the loop, and only numbers are read from it."""
    key = call.key
    if not key and isinstance(call.receiver, ast.Subscript):
        key = dotted(call.receiver.value)
    starts = program.values.bindings(key, loop.scope) if key else []
    if not starts or any(each.context.scope is loop.scope and loop.around(each.context) for each in starts):
        return False
    made = [part_of(each) for each in starts if each.how == "="]
    if not made or not all(_empty(value) for value in made):
        return False
    if any(other.key == key and other.method in ("clear", "pop") for other in program.calls):
        return False
    return not _differentiated(key, loop, program)


def _empty(value: ast.expr | None) -> bool:
    """Return True for an empty list, and for a dict of empty lists."""
    if isinstance(value, ast.Dict):
        return all(_empty(one) for one in value.values)
    return isinstance(value, ast.List) and not value.elts


def _differentiated(key: str, loop: Training, program: Program) -> bool:
    """Return True if a backward pass may begin from a total or from a list of losses."""
    for call in program.method("backward", "manual_backward", "grad"):
        for part in (call.receiver, *call.arguments()):
            if part is None:
                continue
            found = program.values.origin(part, call.context, call.order)[0]
            if any(key in (name, name.partition(".")[0]) for node in (part, found) for name in names_in(node)):
                return True
    return False


def _with_graph(node: ast.AST, name: str, kept: str, backward: ast.AST) -> Suspicion:
    return Suspicion(
        node,
        f"`{kept}` keeps the graph of `{name}` from every step",
        f"`{name}` is kept with its graph",
        f"keep `{name}.item()` or `{name}.detach()`",
        ((backward, "the loss with the graph"),),
    )
