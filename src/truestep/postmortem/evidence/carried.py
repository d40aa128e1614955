"""Variables and module attributes that a loop carries from one iteration to the next with their autograd graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from truestep.findings import Mark
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.crash import Crash, Frame


def backwards(frame: Frame) -> Iterator[tuple[ast.Call, ast.expr]]:
    """Yield the calls of backward in a frame's code, each with its root expression."""
    if frame.scope is None:
        return
    for call in source_code.calls(frame.scope):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
            begun = call.func.value
            if isinstance(begun, ast.Call) and isinstance(begun.func, ast.Attribute) and begun.func.attr == "scale":
                begun = begun.args[0] if begun.args else begun
            yield call, begun


def read_for(frame: Frame) -> set[str]:
    """Return the variables that the root of the backward pass was computed from."""
    begun = next((begun for call, begun in backwards(frame) if call is frame.node), None)
    if begun is None or frame.file is None or frame.scope is None:
        return set()
    found: set[str] = set()
    for one in frame.file.sources(frame.scope, begun):
        found |= {ast.unparse(node) for node in ast.walk(one) if isinstance(node, ast.Name | ast.Attribute)}
    return found


def carried_names(frame: Frame, loop: ast.AST) -> list[tuple[str, ast.AST, bool]]:
    """Return the variables with a graph that an iteration reads before it sets them, and the setting statements."""
    assert frame.file is not None
    found: dict[str, tuple[str, ast.AST, bool]] = {}
    settings = [s for s in source_code.all_settings(loop) if frame.file.statement(s.node) is not loop]
    for setting in settings:
        key = setting.key
        if key in found or not _has_graph(frame.value(ast.parse(key, mode="eval").body)):
            continue
        first = min(source_code.start(s.statement) for s in settings if s.key == key)
        adds = isinstance(setting.statement, ast.AugAssign)
        if adds or _read_by(loop, key, first, setting.statement):
            found[key] = (key, setting.statement, adds)
    return list(found.values())


def _read_by(loop: ast.AST, key: str, first: tuple[int, int], statement: ast.AST) -> bool:
    """Return True if an iteration reads a variable before, or in, the first statement that sets it."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == key:
            if source_code.start(node) < first or (
                statement in _around(loop, node) and source_code.start(statement) == first
            ):
                return True
    return False


def _around(loop: ast.AST, node: ast.AST) -> list[ast.AST]:
    return [one for one in ast.walk(loop) if isinstance(one, ast.stmt) and node in set(ast.walk(one))]


def _has_graph(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(frame_values.is_tensor(item) and item.grad_fn is not None for item in value[:8])
    return frame_values.is_tensor(value) and value.grad_fn is not None


def detached(name: str, frame: Frame) -> str:
    value = frame.value(ast.parse(name, mode="eval").body)
    return (
        f"{name} = tuple(s.detach() for s in {name})" if type(value) in (tuple, list) else f"{name} = {name}.detach()"
    )


def _carried_attribute(crash: Crash) -> tuple[str, str, Any] | None:
    """Return the only attribute of the program's modules that holds a graph: its name, its key and the module."""
    found: dict[int, tuple[str, str, Any]] = {}
    for root, module, _ in crash.modules():
        for path, one in frame_values.tree(module, "" if root == "self" else root):
            crash.check()
            own = [*frame_values.attributes(one).items(), *frame_values._buffers(one).items()]
            for key, value in own:
                if not key.startswith("_") and _has_graph(value):
                    found[id(one), key] = (f"{path}.{key}" if path else key, key, one)  # type: ignore[index]
    return next(iter(found.values())) if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class KeptTensor:
    """A module attribute that keeps a graph from one call to the next."""

    name: str
    mark: Mark
    """The line of ``forward`` that stores the attribute."""
    cut: str
    """The line that would cut the graph."""


def kept_by_module(crash: Crash) -> KeptTensor | None:
    """Return the attribute that carries a graph from one call of a model to the next, if ``forward`` sets it."""
    held = _carried_attribute(crash)
    if held is None:
        return None
    name, key, owner = held
    forward = getattr(vars(type(owner)).get("forward"), "__code__", None)
    if forward is None or crash.scene.sites.kind(forward) != 0:
        return None
    file = crash.file(forward.co_filename)
    scope = None if file is None else file.scope(forward)
    if file is None or scope is None:
        return None
    settings = file.settings(scope, f"self.{key}")
    reads = [
        node
        for node in source_code.walk(scope)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and ast.unparse(node) == f"self.{key}"
    ]
    if len(settings) != 1 or not reads or source_code.start(reads[0]) > source_code.end(settings[0].statement):
        return None
    plain = type(frame_values.attribute(owner, key)) not in (tuple, list)
    cut = f"self.{key} = " + (f"self.{key}.detach()" if plain else f"tuple(s.detach() for s in self.{key})")
    mark = Mark(file.site(settings[0].statement, forward.co_name), f"keeps `self.{key}` with the graph behind it")
    return KeptTensor(name, mark, cut)
