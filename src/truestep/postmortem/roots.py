"""Backward passes that cannot begin: from more than one number, or from a tensor without a graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import torch

from truestep.events import Site
from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame
from truestep.postmortem.evidence.frame_values import shape

NOT_SCALAR = r"^grad can be implicitly created only for scalar outputs"
NO_GRAPH = r"^element 0 of tensors does not require grad and does not have a grad_fn"
_CUTS = {"detach", "item", "numpy", "tolist", "argmax", "argmin", "round", "data", "bool", "long", "int"}
_MAKES = {"tensor", "as_tensor", "from_numpy", "Tensor", "FloatTensor"}
_OFF = {"no_grad", "inference_mode"}


def _begun(crash: Crash) -> tuple[Frame, ast.expr] | None:
    """Return the frame that called backward, and the root expression."""
    frame = crash.last
    match frame.node:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(attr="scale"), args=[one]), attr="backward")
        ):
            return frame, one
        case ast.Call(func=ast.Attribute(value=one, attr="backward")):
            return frame, one
        case _:
            return None


# --- more than one number --------------------------------------------------------------------------------------------


def not_scalar(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    root = crash.inner_value("backward")
    begun = _begun(crash)
    if begun is None or not frame_values.is_tensor(root) or root.numel() == 1:
        return None
    frame, node = begun
    name = ast.unparse(node)
    name = name if len(name) <= 40 else "this"
    related = []
    unreduced = _unreduced(frame, node)
    if unreduced is not None:
        related.append(Mark(frame.place(unreduced), 'made with reduction="none": one loss per element'))
    else:
        origin = crash.origin(frame, node)
        if origin is not None and origin.site.line != frame.site.line:
            related.append(Mark(origin.site, f"`{name}` {shape(root.shape)} comes from here"))
    return PostMortem(
        slug="loss-not-a-number",
        error="",
        message=f"`{name}` holds {root.numel():,} numbers, but a backward pass begins from one",
        primary=crash.fails(f"`{name}` is {shape(root.shape)}"),
        related=tuple(related),
        help=f"write `{name}.mean().backward()`, or `{name}.sum().backward()` where the sum is meant",
    )


def _unreduced(frame: Frame, node: ast.expr) -> ast.Call | None:
    for call in _calls(frame, node):
        if any(key.arg == "reduction" and _is_none(key.value) for key in call.keywords):
            return call
        value = frame.value(call.func)
        if (
            value is not MISSING
            and frame_values.is_module(value)
            and frame_values.attributes(value).get("reduction") == "none"
        ):
            return call
    return None


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "none"


def _calls(frame: Frame, node: ast.expr) -> Iterator[ast.Call]:
    if frame.file is not None and frame.scope is not None:
        for one in frame.file.sources(frame.scope, node):
            yield from (call for call in ast.walk(one) if isinstance(call, ast.Call))


# --- no graph --------------------------------------------------------------------------------------------------------


def no_graph(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    begun = _begun(crash)
    root = crash.inner_value("backward")
    if begun is None or not frame_values.is_tensor(root) or root.requires_grad:
        return None
    frame, node = begun
    found = _switched_off(crash, frame, node) or _frozen(crash, frame, node) or _cut(frame, node)
    if found is None:
        return None
    message, marks, help = found
    name = ast.unparse(node)
    return PostMortem(
        slug="loss-without-graph",
        error="",
        message=f"`{name}` {message}" if len(name) <= 40 else f"the loss {message}",
        primary=crash.fails("no graph leads from here to a weight"),
        related=marks,
        help=help,
    )


Reason = tuple[str, tuple[Mark, ...], str]


def _switched_off(crash: Crash, frame: Frame, node: ast.expr) -> Reason | None:
    """Explain the loss by disabled gradients: in a block around its line, or by a switch that is still off."""
    if frame.file is None or frame.scope is None:
        return None
    models: list[ast.expr] = [call for call in _calls(frame, node) if frame_values.is_module(frame.value(call.func))]
    made = models or [setting.value for setting in [frame.reached(ast.unparse(node))] if setting and setting.value]
    blocks = [_block(frame, one) for one in made]
    if blocks and None not in blocks:
        switch = blocks[-1]
        assert switch is not None
        text = ast.unparse(switch)
        marks = (Mark(frame.place(switch), "records no graph in this block"), Mark(frame.place(made[-1]), "runs in it"))
        return f"comes from a computation under `{text}`", marks, f"compute it outside of `with {text}`"
    for other in reversed(crash.frames):
        for decorator in getattr(other.scope, "decorator_list", []):
            if _switches_off(decorator):
                text = ast.unparse(decorator)
                mark = Mark(other.place(decorator), f"records no graph in all of `{other.code.co_name}`")
                return f"was computed under `@{text}`", (mark,), f"remove `@{text}` from `{other.code.co_name}`"
    if not torch.is_grad_enabled():
        for other in reversed(crash.frames):
            for call in source_code.calls(other.scope) if other.scope is not None else ():
                match call:
                    case ast.Call(func=ast.Attribute(attr="set_grad_enabled"), args=[ast.Constant(value=False)]):
                        mark = Mark(other.place(call), "switches gradients off, and they are still off")
                        return (
                            "was computed with gradients switched off",
                            (mark,),
                            "switch them on again: `torch.set_grad_enabled(True)`",
                        )
    return None


def _block(frame: Frame, node: ast.AST) -> ast.expr | None:
    """Return the context manager that disables gradients around an expression."""
    assert frame.file is not None
    for up in frame.file.above(node):
        if isinstance(up, ast.With):
            for item in up.items:
                if _switches_off(item.context_expr):
                    return item.context_expr
    return None


def _switches_off(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name in _OFF and not (isinstance(node, ast.Call) and node.args)


def _frozen(crash: Crash, frame: Frame, node: ast.expr) -> Reason | None:
    """Explain the loss by its models, if all their weights are frozen."""
    used: dict[str, Any] = {}
    for call in _calls(frame, node):
        value = frame.value(call.func)
        if value is not MISSING and frame_values.is_module(value):
            weights = list(_weights(value))
            if weights:
                used[ast.unparse(call.func)] = weights
    if not used or any(weight.requires_grad for weights in used.values() for weight in weights):
        return None
    names = " and ".join(f"`{name}`" for name in used)
    site = _freezes(crash)
    marks = () if site is None else (Mark(site, "freezes the weights"),)
    return (
        f"comes from {names}, of which every weight is frozen",
        marks,
        "unfreeze the weights to train",
    )


def _freezes(crash: Crash) -> Site | None:
    """Return the only visible line that freezes weights."""
    found = []
    for frame in crash.frames:
        for node in source_code.walk(frame.scope) if frame.scope is not None else ():
            match node:
                case ast.Assign(targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)):
                    found.append(frame.place(node))
                case ast.Call(func=ast.Attribute(attr="requires_grad_"), args=[ast.Constant(value=False)]):
                    found.append(frame.place(node))
    return found[0] if len(found) == 1 else None


def _cut(frame: Frame, node: ast.expr) -> Reason | None:
    """Explain the loss by the only expression on the way to it that leaves the graph."""
    if frame.file is None or frame.scope is None:
        return None
    found: dict[ast.expr, str] = {}
    for one in frame.file.sources(frame.scope, node):
        for inner in ast.walk(one):
            match inner:
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _CUTS and name != "data":
                    if _is_on_the_way(frame, owner):
                        found[inner] = f"`.{name}()`"
                case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"), attr=name), args=[given, *_]) if (
                    name in _MAKES
                ):
                    if not isinstance(given, ast.Constant | ast.List) or _holds_names(given):
                        found[inner] = f"`torch.{name}(...)`"
                case ast.Attribute(attr="data", value=owner) if _is_on_the_way(frame, owner):
                    found[inner] = "`.data`"
    if len(found) != 1:
        return None
    ((inner, word),) = found.items()
    if _leads_past(frame, node, inner):
        return None
    what = ast.unparse(inner)
    what = what if len(what) <= 40 else word.strip("`")
    mark = Mark(frame.place(inner), "leaves the graph: its result is plain numbers")
    return f"was made from {word}, which has no graph", (mark,), f"compute the loss without `{what}`"


def _leads_past(frame: Frame, node: ast.expr, cut: ast.expr) -> bool:
    """Return True if a trainable value leads to the loss on a path that avoids the cut."""
    assert frame.file is not None
    assert frame.scope is not None
    inside = set(ast.walk(cut))
    for one in frame.file.sources(frame.scope, node, cut):
        for inner in ast.walk(one):
            if inner in inside or inner is node:
                continue
            if isinstance(inner, ast.Call):
                value = frame.value(inner.func)
                if value is not MISSING and frame_values.is_module(value) and any(True for _ in _weights(value)):
                    return True
            elif isinstance(inner, ast.Name | ast.Attribute):
                value = frame.value(inner)
                if value is not MISSING and frame_values.is_tensor(value) and value.requires_grad:
                    return True
    return False


def _weights(module: Any) -> Iterator[Any]:
    for _, one in frame_values.tree(module):
        yield from frame_values.parameters(one).values()


def _is_on_the_way(frame: Frame, owner: ast.expr) -> bool:
    """Return True if the cut is applied to a model's output, as far as the code shows: a call, or its variable."""
    if isinstance(owner, ast.Call):
        value = frame.value(owner.func)
        return value is not MISSING and frame_values.is_module(value)
    value = frame.value(owner)
    return value is not MISSING and frame_values.is_tensor(value) and value.requires_grad


def _holds_names(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))
