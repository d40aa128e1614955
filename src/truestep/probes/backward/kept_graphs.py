"""Detect graphs that outlive their step: a small token attached to a node of the tape shows if the node is alive."""

from __future__ import annotations

import ast
import functools
import sys
import weakref
from collections import deque
from collections.abc import Callable
from types import FunctionType
from typing import Any

from truestep import source
from truestep.events import GraphsKept, Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene
from truestep.seams.code.functions import code_of

_ROOT, _MARK = "truestep root", "truestep"
"""Keys of tokens: of nodes that a backward pass began from, and of others."""
_MARKS = 64
_ENOUGH = 16
_RECENT = 8
_SUMMED = 4
"""Terms of a sum that keeps the graphs of past steps."""
_LEAST_STEPS = 2
_LISTED = 12
"""Items of a list that keeps them."""
_AFTER = 4
"""Calls by which outputs are examined later than losses, which keep the graphs of outputs too."""


_LIBRARIES = sys.stdlib_module_names | {"numpy", "torch"}
_Holds = Callable[[Any], "str | None"]


class _Token:
    __slots__ = ("__weakref__", "step")

    def __init__(self, step: int) -> None:
        self.step = step


class Keep:
    """Marks the graphs of the first backward passes and counts those that stay alive."""

    def __init__(self, scene: Scene, *, named: bool = False) -> None:
        self.scene = scene
        self.named = named
        """True reports graphs only if the variable that keeps them is found."""
        self.marks: list[weakref.ref[_Token]] = []
        self.full = False
        self._collecting: set[str] = set()
        """Variables that collect losses."""

    def mark(self, node: Any, site: Site | None, *, backward: bool) -> None:
        """Attach a token to the node's metadata: it dies with the node and keeps nothing alive."""
        if node is None or self.full:
            return
        token = _Token(self.scene.sampling.step)
        node.metadata[_ROOT if backward and not self.named else _MARK] = token
        self.marks.append(weakref.ref(token))
        count = len(self.marks)
        self.full = count >= _MARKS
        if backward and not self.named and count % _RECENT == 0:
            self._look_for_used_losses(count, node)
        later = _AFTER if self.named else 0
        if count in (_ENOUGH + _RECENT + later, 2 * _ENOUGH + _RECENT + later, _MARKS):
            del token
            self._judge(site, backward, node)

    def _look_for_used_losses(self, count: int, node: Any) -> None:
        """Emit a variable that collects losses that earlier backward passes began from."""
        # Without steps, as of an optimizer that is not known, a window has no end that would show.
        alone = self.scene.sampling.step == 0 and count > _ENOUGH
        holds = functools.partial(_collects_used_losses, least=1 if alone else _LEAST_STEPS)
        name, line = self._keeper(self.scene.sites.frame(1), holds)
        if name and line is not None and name not in self._collecting:
            self._collecting.add(name)
            nodes, _ = graph_size(node)
            self.scene.emit(GraphsKept(alive=_SUMMED, of=count, nodes=nodes, name=name, used=True, site=line))

    def _judge(self, site: Site | None, backward: bool, node: Any) -> None:
        older = self.marks[:-_RECENT]
        alive = sum(mark() is not None for mark in older)
        if alive < _ENOUGH or alive < 0.9 * len(older):
            return
        nodes, kept = graph_size(node)
        name, line = self._keeper(self.scene.sites.frame(1), _holds_graphs)
        if self.named and (not name or name in self.scene.losses.kept_by):
            return
        if not self.named:
            self.scene.losses.kept_by.add(name)
        self.scene.emit(
            GraphsKept(
                alive=alive,
                of=len(older),
                nodes=nodes,
                kept_bytes=0 if backward else kept,
                name=name,
                backward_ran=backward,
                site=line or site,
            )
        )

    def _keeper(self, frame: Any, holds: _Holds) -> tuple[str, Site | None]:
        """Return the variable in the user's frames that holds the graphs, and the line that adds them."""
        while frame is not None:
            if self.scene.sites._kind.get(id(frame.f_code)) == 0:
                found = _find(variables(frame), frame.f_code.co_filename, holds)
                if found is not None:
                    name, inside, owner = found
                    return name, _line_of(inside, frame, owner)
            frame = frame.f_back
        return "", None


def _find(names: dict[str, Any], path: str, holds: _Holds) -> tuple[str, str, str] | None:
    """Return the holder of graphs: its name here, its name at the line that fills it, and the class of that line."""
    meters: list[tuple[str, Any]] = []
    for name, value in list(names.items()):
        inner = {name: value}
        if name == "self" and hasattr(value, "__dict__"):
            inner |= {f"self.{attribute}": held for attribute, held in list(vars(value).items())[:200]}
        for label, held in inner.items():
            key = holds(held)
            if key is not None:
                return label + key, label + key, ""
            if label != "self" and hasattr(held, "__dict__") and _defined_in(type(held), path):
                meters.append((label, held))
    for label, meter in meters[:50]:
        for attribute, held in list(vars(meter).items())[:50]:
            key = holds(held)
            if key is not None:
                return f"{label}.{attribute}{key}", f"self.{attribute}{key}", type(meter).__name__
    return None


def _defined_in(cls: type, path: str) -> bool:
    """Return True if a class is defined in this file."""
    if cls.__module__.partition(".")[0] in _LIBRARIES:
        return False
    functions = (value for value in vars(cls).values() if isinstance(value, FunctionType))
    return any(code_of(one).co_filename == path for one in functions)


def _holds_graphs(value: Any, depth: int = 0) -> str | None:
    """Return the place of graphs in a value, as a subscript ("" for the value itself); None without graphs.

    Such a value is a container of many tensors with a history, or a sum that grew a long one.
    """
    if isinstance(value, list | tuple | deque) and len(value) >= _ENOUGH:
        sample = list(value)[:: max(1, len(value) // _ENOUGH)]
        return "" if sum(_node(item) is not None for item in sample) >= _ENOUGH // 2 else None
    if isinstance(value, dict) and depth == 0:
        return next((f"[{key!r}]" for key, item in list(value.items())[:50] if _holds_graphs(item, 1) == ""), None)
    node = _node(value)
    if node is None or not hasattr(node, "next_functions"):
        return None
    for _ in range(_RECENT):
        if not node.name().startswith("Add"):
            return None
        adders = [f for f, _ in node.next_functions if f is not None and f.name().startswith("Add")]
        if not adders:
            return None
        node = adders[0]
    return ""


def _collects_used_losses(value: Any, least: int) -> str | None:
    """Return "" for a sum or a list of losses that earlier backward passes began from, a subscript for one in a dict.

    A loss that a later pass needs has not been the root of an earlier pass. Losses of one step are a window of
    accumulation, which ends with the step.

    Args:
        value: a variable.
        least: least number of steps that the losses must come from.
    """
    if isinstance(value, dict):
        return next(
            (f"[{key!r}]" for key, one in list(value.items())[:50] if _collects_used_losses(one, least) == ""), None
        )
    if isinstance(value, list):  # a deque often has a length on purpose
        nodes = [_node(one) for one in value[-_LISTED:]]
        steps = [None if node is None else _step_of_pass(node) for node in nodes]
        return "" if len(nodes) == _LISTED and None not in steps and len(set(steps)) >= least else None
    node, found = _node(value), []
    for _ in range(4 * _SUMMED):
        if node is None or not hasattr(node, "next_functions") or not node.name().startswith("Add"):
            return None
        inner = [following for following, _ in node.next_functions if following is not None]
        found += [step for one in inner if (step := _step_of_pass(one)) is not None]
        if len(found) >= _SUMMED and len(set(found)) >= least:
            return ""
        node = next((one for one in inner if one.name().startswith("Add") and _step_of_pass(one) is None), None)
    return None


def _node(value: Any) -> Any:
    """Return the last operation of a tensor on the tape; None without one, or if it cannot be read."""
    try:
        return getattr(value, "grad_fn", None)
    except RuntimeError:  # a view that was written to in place without gradients
        return None


def _step_of_pass(node: Any) -> int | None:
    """Return the step of a backward pass that began from a node of the tape, or from its only input."""
    inner = [following for following, _ in node.next_functions if following is not None]
    for one in (node, inner[0]) if len(inner) == 1 else (node,):
        if isinstance(token := one.metadata.get(_ROOT), _Token):
            return token.step
    return None


def _line_of(name: str, frame: Any, owner: str) -> Site | None:
    """Return the line of the user's file that appends to, or adds to, this variable (in the class of that name)."""
    tree: ast.AST | None = source.parsed(frame.f_code.co_filename)
    if tree is None:
        return None
    if owner:
        classes = (node for node in source.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owner)
        tree = next(classes, tree)
    return _filling(name, tree, frame) or _filling(name.partition("[")[0], tree, frame)


def _filling(name: str, tree: ast.AST, frame: Any) -> Site | None:
    path = frame.f_code.co_filename
    whole = "[" in name
    for node in source.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("append", "extend", "add", "appendleft")
        ):
            holder = node.func.value
            if not whole and isinstance(holder, ast.Subscript):
                holder = holder.value
            if ast.unparse(holder) == name:
                return _site(path, node, frame)
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
            return _site(path, node, frame)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
            if any(ast.unparse(t) == name for t in node.targets) and name in ast.unparse(node.value):
                return _site(path, node, frame)
    return None


def _site(path: str, node: ast.expr | ast.stmt, frame: Any) -> Site:
    return Site(
        path=path,
        line=node.lineno,
        column=node.col_offset,
        end_line=node.end_lineno or node.lineno,
        end_column=node.end_col_offset if node.end_col_offset is not None else -1,
        function=frame.f_code.co_name,
    )


def graph_size(node: Any) -> tuple[int, int]:
    """Return the number of operations of a graph, and an upper bound of the bytes of their results."""
    seen: set[Any] = {node}
    queue = [node]
    total = 0
    while queue and len(seen) < 20_000:
        current = queue.pop()
        for metadata in getattr(current, "_input_metadata", ()):
            count = 1
            for size in metadata.shape:
                count *= int(size)
            total += count * metadata.dtype.itemsize
        for following, _ in current.next_functions:
            if (
                following is not None
                and following not in seen
                and following.name() != "torch::autograd::AccumulateGrad"
            ):
                seen.add(following)
                queue.append(following)
    return len(seen), total
