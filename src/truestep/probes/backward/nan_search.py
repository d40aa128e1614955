"""Find values that are not finite, after a loss was not finite and never before.

The forward pass that made them is over, and is not repeated. The search reads variables of the loop that calls
backward, parameters, the optimizer's moments of their gradients, and the order of the tape.
"""

from __future__ import annotations

import ast
from collections import deque
from types import FrameType
from typing import Any, NamedTuple

from truestep import source
from truestep.events import Site
from truestep.probes.context.local_variables import variables
from truestep.probes.context.scene import Scene, is_lazy
from truestep.probes.context.values import has_values
from truestep.probes.gradients.gradient_states import Held, here
from truestep.seams.fsdp import is_freed

_MOST_NODES = 20_000
_MOST_VARIABLES = 64
_MOST_ITEMS = 8
_NAMED = 4
_LARGEST = 1 << 26
_SCOPES = (ast.For, ast.AsyncFor, ast.While, ast.FunctionDef, ast.AsyncFunctionDef)


class Variable(NamedTuple):
    """A variable of the loop that calls backward, with the place that sets its value."""

    name: str
    node: ast.Name
    place: tuple[int, int]


def whereabouts(scene: Scene, node: Any, frame: FrameType | None) -> dict[str, Any]:
    """Return the fields of `LossNotFinite` with the places of such values.

    Args:
        scene: the scene.
        node: operation that made the loss.
        frame: the user's frame that called backward; None if a library did.
    """
    bad = [held for held in list(scene.ledger.by_id.values()) if not _is_finite(scene, held)]
    found: dict[str, Any] = {"parameters_finite": not bad}
    if bad:
        found |= {"first_parameter": bad[0].name, "bad_parameters": len(bad)}
        found |= _nearest(scene, node, {held.number for held in bad}) | _moments(scene, bad[0])
    if frame is not None:
        found |= _variables(scene, frame)
    return found


# --- parameters ------------------------------------------------------------------------------------------------------


def _is_finite(scene: Scene, held: Held) -> bool:
    parameter = held.ref()
    if parameter is None or is_lazy(parameter) or not parameter.is_floating_point():
        return True
    if not has_values(parameter):
        return True
    values = here(parameter)
    return is_freed(values) or bool(scene.torch.isfinite(values).all())


def _nearest(scene: Scene, node: Any, bad: set[int]) -> dict[str, Any]:
    """Find the parameter that is not finite and nearest to the loss, by operations, if nearer ones are finite."""
    seen: set[Any] = set()
    queue: deque[Any] = deque([node] if node is not None else [])
    finite: list[int] = []
    while queue and len(seen) < _MOST_NODES:
        current = queue.popleft()
        if current in seen:
            continue
        seen.add(current)
        if current.name() == "torch::autograd::AccumulateGrad":
            held = scene.ledger.held(current.variable)
            if held is not None and held.number in bad:
                nearest = {"nearest": held.name, "finite_nearer": len(finite)}
                return nearest if finite else {}
            if held is not None:
                finite.append(held.number)
        queue.extend(following for following, _ in current.next_functions if following is not None)
    return {}


def _moments(scene: Scene, held: Held) -> dict[str, Any]:
    """Return the field that says if the optimizer's moments of a parameter's gradients are finite."""
    optimizer = None if held.panel is None else held.panel.optimizer()
    parameter = held.ref()
    if optimizer is None or parameter is None:
        return {}
    state = optimizer.state.get(parameter)
    if not isinstance(state, dict):
        return {}
    kept = {
        str(name): bool(scene.torch.isfinite(here(value)).all())
        for name, value in state.items()
        if isinstance(value, scene.torch.Tensor)
        and value.is_floating_point()
        and value.shape == parameter.shape
        and has_values(value)
    }
    if not kept:
        return {}
    name = next((name for name, finite in kept.items() if not finite), next(iter(kept)))
    return {"moment": name, "moment_finite": kept[name]}


# --- variables -------------------------------------------------------------------------------------------------------


def _variables(scene: Scene, frame: FrameType) -> dict[str, Any]:
    """Find the first variable, in the order of the code, that is not finite, and the finite ones before it."""
    values = variables(frame)
    finite: list[str] = []
    for variable in _read_before(frame):
        for name, value in _tensors(scene, variable.name, values.get(variable.name)):
            holds = _holds(scene, value)
            if holds == "":
                finite.append(name)
            elif holds is not None:
                node = variable.node
                return {
                    "variable": name,
                    "variable_holds": holds,
                    "variable_tracked": bool(value.requires_grad),
                    "variable_site": Site(
                        frame.f_code.co_filename,
                        node.lineno,
                        node.col_offset,
                        node.end_lineno or node.lineno,
                        -1 if node.end_col_offset is None else node.end_col_offset,
                        frame.f_code.co_name,
                    ),
                    "variables_finite": tuple(finite[-_NAMED:]),
                }
    return {}


def _read_before(frame: FrameType) -> list[Variable]:
    """Return the variables of the innermost loop or function up to the current line, in the order of the code."""
    line = frame.f_lineno
    scope: ast.AST | None = source.parsed(frame.f_code.co_filename)
    if scope is None:
        return []
    for node in source.walk(scope):
        if isinstance(node, _SCOPES) and node.lineno <= line <= (node.end_lineno or 0):
            scope = node  # walked from the outside in
    set_at: dict[int, tuple[int, int]] = {}
    for node in source.walk(scope):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                set_at |= {id(name): _end(node) for name in source.walk(target)}
    first: dict[str, Variable] = {}
    for node in source.walk(scope):
        if isinstance(node, ast.Name) and node.lineno <= line:
            place = set_at.get(id(node), (node.lineno, node.col_offset))
            known = first.get(node.id)
            if known is None or place < known.place:
                first[node.id] = Variable(node.id, node, place)
    return sorted(first.values(), key=lambda variable: variable.place)[:_MOST_VARIABLES]


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _tensors(scene: Scene, name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the tensors of a variable, itself or one level down, with the expressions for them."""
    plain = scene.torch.Tensor
    if type(value) is plain:
        return [(name, value)]
    items: list[tuple[Any, Any]] = []
    if isinstance(value, list | tuple):
        items = list(enumerate(value[:_MOST_ITEMS]))
    elif isinstance(value, dict):
        items = [(key, value[key]) for key in list(value)[:_MOST_ITEMS]]
    return [(f"{name}[{key!r}]", item) for key, item in items if type(item) is plain]


def _holds(scene: Scene, value: Any) -> str | None:
    """Describe the values of a tensor that are not finite: "" for none, None if unknown (a mask of -inf)."""
    torch = scene.torch
    if not value.is_floating_point() or not has_values(value):
        return None
    if not value.numel() or value.numel() > _LARGEST:
        return None
    values = value.detach()
    finite = torch.isfinite(values)
    if bool(finite.all()):
        return ""
    kind = "nan" if bool(torch.isnan(values).any()) else "inf"
    if kind == "inf" and not value.requires_grad and bool((finite | (values < 0)).all()):
        return None
    if values.dim() == 0:
        return kind
    rows = int((~finite).reshape(values.shape[0], -1).any(1).sum())
    return f"{kind} in {rows} of {values.shape[0]} {'values' if values.dim() == 1 else 'rows'}"
