"""Averages of weights that a file writes out, from the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from truestep.syntax import Call, Kind, Program, Scope, Suspicion, dotted, names_in

_WRITES = ("mul_", "add_", "lerp_", "copy_", "sub_", "addcmul_", "load_state_dict", "update_parameters")
_COPIES = ("deepcopy", "clone", "state_dict", "copy")


def own_averages(program: Program) -> Iterator[Suspicion]:
    """Yield objects of classes that average a model, if the method that updates the average is never called."""
    trained = {loop.model(step) for loop, step in program.roles.updates(in_loops=True)} - {""}
    for owner in program.classes() if trained else ():
        updates = _updates(owner, program)
        for call in program.method(owner.name.rpartition(".")[2]) if updates else ():
            made = program.definition(call.method, call.scope) if not call.key else None
            statement = call.statement
            if made is not owner or not isinstance(statement, ast.Assign) or statement.value is not call.node:
                continue
            key = dotted(statement.targets[0])
            if not key or not trained & {dotted(one) for one in call.arguments()} or _updated(key, updates, program):
                continue
            read = _read(key, call, program)
            if read is not None:
                yield Suspicion(
                    call.node,
                    f"the average `{key}` is never updated, and keeps the first weights",
                    "is built, and never updated",
                    f"call `{key}.{sorted(updates)[0]}(...)` after each step",
                    ((read, "reads the first weights"),),
                )


def _updates(owner: Scope, program: Program) -> set[str]:
    """Return the methods of a class that write to a copy of a model which its `__init__` made."""
    start = owner.inner.get("__init__")
    if start is None or any(base not in ("object", "torch.nn.Module") for base in program.bases(owner)):
        return set()
    copies = {
        key
        for key, bindings in start.bindings.items()
        for one in bindings
        if key.startswith("self.") and one.value is not None and _copies(one.value, start)
    }
    methods = {name: one for name, one in owner.inner.items() if name != "__init__"}
    found = {name for name, method in methods.items() if _writes(method, copies)}
    for _ in methods:  # a method that calls one of them updates the average too
        found |= {
            name
            for name, method in methods.items()
            if any(call.key == "self" and call.method in found for call in method.calls)
        }
    return found


def _writes(method: Scope, copies: set[str]) -> bool:
    """Return True if a method writes to tensors, and reads one of some attributes."""
    names = (*method.loads, *method.bindings)
    if not any(name == one or name.startswith((f"{one}.", f"{one}[")) for one in copies for name in names):
        return False
    written = any("[]" in key or key.endswith(".data") for key in method.bindings)
    return written or any(call.method in _WRITES for call in method.calls)


def _copies(value: ast.expr, start: Scope) -> bool:
    """Return True if an expression copies a parameter of a function, or its weights."""
    copied = any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute) and _last(node.func) in _COPIES
        for node in ast.walk(value)
    )
    return copied and any(name.partition(".")[0] in start.parameters for name in names_in(value))


def _last(function: ast.Name | ast.Attribute) -> str:
    return function.id if isinstance(function, ast.Name) else function.attr


def _updated(key: str, updates: set[str], program: Program) -> bool:
    """Return True if an object may be updated: by a method, with a model, in a training loop, or elsewhere."""
    name = key.rpartition(".")[2]
    receivers = set()
    for call in program.calls:
        if call.key.rpartition(".")[2] != name:
            continue
        receivers.add(call.receiver)
        given = [one for one in call.arguments() if program.kinds.is_a(one, Kind.MODEL, call.context, call.order)]
        if call.method in updates or given:
            return True
    return any(
        text.rpartition(".")[2] == name and node not in receivers
        for scope in program.scopes
        for text, uses in scope.loads.items()
        for _, node in uses
    )


def _read(key: str, made: Call, program: Program) -> ast.expr | None:
    """Return the first use of a part of an object behind its construction, such as of the averaged model."""
    name = key.rpartition(".")[2]
    for scope in program.scopes:
        for call in scope.calls:
            if call.key.rpartition(".")[2] == name and call.order > made.order:
                return call.node
        for text, uses in scope.loads.items():
            if name in text.split(".")[:-1] and uses[0][0] > made.order:
                return uses[0][1]
    return None
