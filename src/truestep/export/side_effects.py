"""Changes that a forward pass makes outside of its outputs: to its inputs, to its module, to generators of Python."""

from __future__ import annotations

import ast
import inspect
import random
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.fx import Node

from truestep.export.refusals import Line, line_in

OF_TORCH = frozenset(vars(nn.Module())) | {"_is_full_backward_hook"}
"""Attributes of each module that torch keeps."""


@dataclass(frozen=True, slots=True)
class Change:
    """An attribute of a module that a forward pass changes.

    Attributes:
        module: name of the module in the model; "" for the model itself.
        attribute: name of the attribute or buffer.
        line: the line that assigns it; None if it is unknown.
    """

    module: str
    attribute: str
    line: Line | None

    def __str__(self) -> str:
        return f"self.{self.attribute}" + (f" of {self.module}" if self.module else "")


class Watch:
    """State outside of outputs, at one moment.

    Args:
        model: any module.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._attributes = {name: _state(module) for name, module in model.named_modules()}
        self._buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
        self._python = _python_random()

    def changes(self) -> list[Change]:
        """Return the attributes and buffers that changed since."""
        found = []
        for name, module in self._model.named_modules():
            old, now = self._attributes.get(name, {}), _state(module)
            changed = [each for each in now if each not in old or not _equal(old[each], now[each])]
            found += [Change(name, each, _assigned(type(module), each)) for each in changed]
        for name, buffer in self._model.named_buffers():
            before = self._buffers.get(name)
            if before is None or before.shape != buffer.shape or not torch.equal(before, buffer):
                owner, _, attribute = name.rpartition(".")
                module = self._model.get_submodule(owner)
                found.append(Change(owner, attribute, _assigned(type(module), attribute)))
        return found

    @property
    def drew(self) -> bool:
        """True if random numbers of Python or numpy were drawn since."""
        return self._python != _python_random()


def changed_input(program: torch.export.ExportedProgram) -> Line | None:
    """Return the line that changes an input in place, in the graph of a trace; None if it is unknown."""
    inputs = set(program.graph_signature.user_inputs)
    views: set[Node] = {node for node in program.graph.nodes if node.op == "placeholder" and node.name in inputs}
    for node, schema in _operators(program):
        first = node.args[0] if node.args else None
        if first not in views:
            continue
        if schema.is_mutable:
            return line_in(node.meta.get("stack_trace") or "")
        if any(each.alias_info is not None for each in schema.returns):
            views.add(node)
    return None


def random_operator(program: torch.export.ExportedProgram) -> tuple[str, Line | None] | None:
    """Return the name and the line of the first operator that draws random numbers; None without one.

    The name of an attention with dropout is "dropout of" and its name.
    """
    for node, schema in _operators(program):
        if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
            continue
        given = {each.name: each.default_value for each in schema.arguments if each.has_default_value()}
        given |= dict(zip((each.name for each in schema.arguments), node.args, strict=False)) | dict(node.kwargs)
        if any(given.get(name) is False for name in ("train", "training")) or given.get("dropout_p") == 0:
            continue  # layers in eval mode
        name = schema.name.partition("::")[2]
        return f"dropout of {name}" if "dropout_p" in given else name, line_in(node.meta.get("stack_trace") or "")
    return None


def _operators(program: torch.export.ExportedProgram) -> Iterator[tuple[Node, Any]]:
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op == "call_function" and schema is not None:
            yield node, schema


def _state(module: nn.Module) -> dict[str, Any]:
    """Return the user's own attributes of a module, containers copied."""
    own = {name: value for name, value in vars(module).items() if name not in OF_TORCH}
    return {
        name: type(value)(value) if type(value) in (list, dict, set) else value.clone() if _is_tensor(value) else value
        for name, value in own.items()
    }


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _equal(before: Any, now: Any) -> bool:
    if before is now:
        return True
    if _is_tensor(before) and _is_tensor(now):
        return before.shape == now.shape and bool(torch.equal(before, now))
    if type(before) is type(now) and isinstance(now, list | dict | set):
        return len(before) == len(now)
    try:
        return bool(before == now)
    except Exception:  # comparisons of the user's objects raise many types
        return True


def _python_random() -> object:
    numpy = sys.modules.get("numpy")
    state = None if numpy is None else numpy.random.get_state()
    return random.getstate(), None if state is None else (state[1].tobytes(), *state[2:])


def _assigned(kind: type[nn.Module], attribute: str) -> Line | None:
    """Return the line of a class, outside of its `__init__`, that assigns an attribute or calls a method of it."""
    for line, node, self in _written_in(kind):
        if _writes(node, attribute, self):
            return line
    return None


def calling(model: nn.Module, pattern: str) -> Line | None:
    """Return the first line in the classes of a model that calls a function or reads an attribute of a name.

    Args:
        model: any module.
        pattern: regular expression for the whole code of the function or attribute, such as "torch.autograd.grad".
    """
    for kind in dict.fromkeys(map(type, model.modules())):
        for line, node, _ in _written_in(kind):
            named = node.func if isinstance(node, ast.Call) else node
            if isinstance(named, ast.Attribute | ast.Name) and re.fullmatch(pattern, ast.unparse(named), re.DOTALL):
                return line
    return None


def _written_in(kind: type[nn.Module]) -> Iterator[tuple[Line, ast.AST, str]]:
    """Yield the nodes of the methods of a class besides `__init__`, with their lines and the name of `self`."""
    for owner in kind.__mro__:
        if owner.__module__.partition(".")[0] == "torch":
            return
        try:
            lines, start = inspect.getsourcelines(owner)
            path = inspect.getsourcefile(owner) or ""
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            continue
        for method in tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else ():
            if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
                continue
            self = method.args.args[0].arg if method.args.args else ""
            for node in ast.walk(method):
                if isinstance(node, ast.expr | ast.stmt):
                    yield Line(path, start + node.lineno - 1), node, self


def _writes(node: ast.AST, attribute: str, self: str) -> bool:
    targets: list[ast.AST] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        targets = [node.func.value]
    return any(
        isinstance(part, ast.Attribute)
        and part.attr == attribute
        and isinstance(part.value, ast.Name)
        and part.value.id == self
        for target in targets
        for part in ast.walk(target)
    )
