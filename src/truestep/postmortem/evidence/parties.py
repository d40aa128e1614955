"""The tensors of a failed operation: a layer's weight and input, the arguments of a loss, two operands."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import torch

from truestep.events import Site
from truestep.findings import Mark
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame

_ADDED_TO = {"addmm", "addmv", "addbmm", "baddbmm"}
"""Products that are added to a tensor: its argument comes before the operands."""
_MOVES = {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "long", "int", "type", "xpu", "npu"}


@dataclass(frozen=True, slots=True)
class Party:
    """One tensor of a failed operation."""

    name: str
    """Its name in the code; "" if no variable holds it."""
    tensor: Any
    node: ast.expr | None = None
    layer: Any = None
    """The layer that it is the weight of."""
    role: str = ""
    """Its role in a loss: "input" or "target"."""


def parties(crash: Crash) -> list[Party]:
    """Return the two tensors of the failed operation; [] if they are not certain."""
    layer, given = next(
        ((one, x) for one, x in crash.calls("forward", "input") if frame_values.parameters(one)), (None, None)
    )
    if layer is not None:
        weight = next(iter(frame_values.parameters(layer).values()))
        if not frame_values.is_tensor(given) or not frame_values.is_tensor(weight):
            return []
        return [_named(crash, given), Party(crash.name_of(layer), weight, layer=layer)]
    if crash.inner:
        for name in dict.fromkeys(frame.f_code.co_name for frame in reversed(crash.inner)):
            pair = crash.inner_value(name, "input"), crash.inner_value(name, "target")
            if all(map(frame_values.is_tensor, pair)):
                roles = zip(pair, ("input", "target"), strict=True)
                return [replace(_named(crash, one), role=role) for one, role in roles]
        if not isinstance(crash.last.node, ast.BinOp):
            return []
    nodes = operands(crash.last)
    values = [crash.last.value(node) for node in nodes]
    if len(values) != 2 or any(value is MISSING or not frame_values.is_tensor(value) for value in values):
        return []
    return [Party(ast.unparse(node), value, node) for node, value in zip(nodes, values, strict=True)]


def operands(frame: Frame) -> list[ast.expr]:
    """Return the two operands of the operator or torch function that failed."""
    match frame.node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Call(func=ast.Attribute(value=owner, attr=name), args=[*_, one, two]) if name in _ADDED_TO:
            return [one, two] if frame.value(owner) is torch or frame_values.is_tensor(frame.value(owner)) else []
        case ast.Call(func=ast.Attribute(value=owner), args=[one, two, *_]) if frame.value(owner) is torch:
            return [one, two]
        case ast.Call(func=ast.Attribute(value=owner), args=[one]) if frame_values.is_tensor(frame.value(owner)):
            return [owner, one]
        case _:
            return []


def _named(crash: Crash, tensor: Any) -> Party:
    """Return a tensor with the name of the variable that was passed."""
    node = crash.last.node
    if isinstance(node, ast.Call):
        for given in [*node.args, *(keyword.value for keyword in node.keywords)]:
            if crash.last.value(given) is tensor and len(ast.unparse(given)) <= 40:
                return Party(ast.unparse(given), tensor, given)
    return Party("", tensor)


def source(crash: Crash, party: Party, says: str) -> Mark | None:
    """Return a mark at the line that set a tensor."""
    origin = crash.origin(crash.last, party.node)
    if origin is None or (origin.site.path, origin.site.line) == (crash.last.site.path, crash.last.site.line):
        return None
    return Mark(origin.site, says)


def thrown_away(crash: Crash, party: Party) -> tuple[Site, str] | None:
    """Return a statement such as ``x.to(device)`` that ran on a tensor before the failure, and drops its result."""
    node, frame = party.node, crash.last
    if not isinstance(node, ast.Name | ast.Attribute) or frame.scope is None or frame.file is None:
        return None
    key, failing = ast.unparse(node), frame.node
    if frame.is_parameter(key):
        given = crash.given(frame, key)
        if given is None:
            return None
        frame, outer = given
        key, failing = ast.unparse(outer), frame.node
    setting = frame.reached(key)
    if failing is None or frame.file is None or frame.scope is None:
        return None
    around = [failing, *frame.file.above(failing)]
    for statement in frame.statements():
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr))) if attr in _MOVES:
                after = setting is None or source_code.end(setting.statement) <= source_code.start(statement)
                before = source_code.end(statement) <= source_code.start(failing) and frame.file.always(
                    statement, around
                )
                if ast.unparse(owner) == key and after and before:
                    return frame.place(statement), ast.unparse(statement)
    return None


def moved(crash: Crash, layer: Any) -> tuple[Site, str] | None:
    """Return the last visible statement that moved or converted a model with this layer."""
    found = None
    for frame in crash.frames:
        if frame.scope is None:
            continue
        for call in source_code.calls(frame.scope):
            if not isinstance(call.func, ast.Attribute) or call.func.attr not in _MOVES:
                continue
            value = frame.value(call.func.value)
            if value is MISSING and isinstance(call.func.value, ast.Call):
                value = _built_by(frame, call)
            if (
                value is not MISSING
                and frame_values.is_module(value)
                and any(one is layer for _, one in frame_values.tree(value))
            ):
                found = frame.place(call), ast.unparse(call.func)
    return found


def _built_by(frame: Frame, call: ast.Call) -> Any:
    """Return the module created by ``model = Net().to(device)``."""
    assert frame.file is not None
    statement = frame.file.statement(call)
    if isinstance(statement, ast.Assign) and statement.value is call and len(statement.targets) == 1:
        return frame.value(statement.targets[0])
    return MISSING


def listed(crash: Crash, layer: Any) -> str:
    """Return the plain list or dict of a module that holds a layer which is not registered."""
    for name, root, _ in crash.modules():
        for path, owner in frame_values.tree(root, "" if name == "self" else name):
            crash.check()
            for key, value in frame_values.attributes(owner).items():
                items = value.values() if type(value) is dict else value if type(value) in (list, tuple) else ()
                if not key.startswith("_") and any(one is layer for one in items):
                    return f"{path}.{key}" if path else f"self.{key}"
    return ""
