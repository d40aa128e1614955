"""A backward pass through a graph that an earlier one has freed: the earlier pass, and the way back into its graph."""

from __future__ import annotations

import ast
import re
from typing import Any

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.carried import backwards, carried_names, detached, kept_by_module, read_for
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame, Origin
from truestep.postmortem.evidence.tape import behind

MESSAGE = r"^Trying to backward through the graph a second time"
SLUG = "graph-freed"
_SAVES_NOTHING = {
    f"{name}Backward"
    for name in (
        "Add",
        "Sub",
        "T",
        "Transpose",
        "Permute",
        "View",
        "ReshapeAlias",
        "UnsafeView",
        "Unsqueeze",
        "Squeeze",
    )
} | {
    f"{name}Backward" for name in ("Expand", "Sum", "Mean", "Neg", "Clone", "ToCopy", "Alias", "Stack", "Cat", "Select")
}
"""Operations that save no tensor: a graph of only these can be traversed again."""


def explain(crash: Crash, match: re.Match[str]) -> PostMortem | None:
    root = crash.inner_value("backward")
    if not frame_values.is_tensor(root) or root.grad_fn is None:
        return None
    for frame in reversed(crash.frames):
        if frame.node is None or frame.file is None or frame.scope is None:
            continue
        died = _same(crash, frame, root) or _shared(crash, frame, root) or _carried(crash, frame, root)
        if died is not None:
            return died
    return None


def _inside(frame: Frame, node: ast.AST, outer: ast.AST | None) -> bool:
    return outer is not None and frame.file is not None and (node is outer or outer in frame.file.above(node))


# --- the same loss twice ---------------------------------------------------------------------------------------------


def _same(crash: Crash, frame: Frame, root: Any) -> PostMortem | None:
    """Explain the error by an earlier backward pass from the same tensor."""
    assert frame.file is not None
    for call, begun in backwards(frame):
        if frame.value(begun) is not root:
            continue
        name = ast.unparse(begun)
        if frame.node is not None and source_code.end(call) <= source_code.start(frame.node):
            if not frame.file.always(call, [frame.node, *frame.file.above(frame.node)]):
                continue
            setting = frame.reached(name)
            if setting is None or source_code.end(setting.statement) > source_code.start(call):
                continue
            where = "the first backward pass, which freed the graph"
        elif call is frame.node:
            loop = next(iter(frame.file.loops(call)), None)
            setting = frame.reached(name)
            if loop is None or setting is None or setting.statement in set(ast.walk(loop)):
                continue
            return PostMortem(
                slug=SLUG,
                error="",
                message=f"`{name}` is computed once, and the loop calls backward on it again",
                primary=crash.fails("frees the graph in the first iteration, fails in the second"),
                related=(Mark(frame.place(setting.node), f"`{name}` is computed here, outside of the loop"),),
                help=f"compute `{name}` inside the loop",
            )
        else:
            continue
        return PostMortem(
            slug=SLUG,
            error="",
            message=f"backward was called twice on `{name}`, and the first call freed its graph",
            primary=crash.fails("fails here: the graph is gone"),
            related=(Mark(frame.place(call), where),),
            help=f"call `{name}.backward()` once, or compute `{name}` again before the second call",
        )
    return None


# --- another loss over the same part ---------------------------------------------------------------------------------


def _shared(crash: Crash, frame: Frame, root: Any) -> PostMortem | None:
    """Explain the error by an earlier backward pass from another tensor that shares a part of the graph."""
    assert frame.node is not None
    graph = behind(crash, root.grad_fn)
    found: tuple[ast.Call, ast.expr, set[Any]] | None = None
    for call, begun in backwards(frame):
        other = frame.value(begun)
        if not frame_values.is_tensor(other) or other is root or other.grad_fn is None:
            continue
        if source_code.end(call) > source_code.start(frame.node) or any(
            word.arg == "retain_graph" for word in call.keywords
        ):
            continue
        if not _ran_before(frame, call, begun):
            continue
        common = graph & behind(crash, other.grad_fn)
        if common:
            found = (call, begun, common)
    if found is None:
        return None
    call, begun, common = found
    carried = _latest(crash, common)
    if carried is None:
        return None
    name, origin = carried
    first = ast.unparse(begun)
    made = (Mark(origin.site, f"`{name}` is computed here, once for both"),) if origin is not None else ()
    method = frame.node.func if isinstance(frame.node, ast.Call) else None
    begins = isinstance(method, ast.Attribute) and method.attr == "backward"
    other = ast.unparse(method.value) if begins and isinstance(method, ast.Attribute) else "this loss"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{name}` leads into the graph that `{ast.unparse(call.func)}()` has freed",
        primary=crash.fails(f"fails here: `{other}` depends on `{name}` too"),
        related=(*made, Mark(frame.place(call), f"goes through `{name}`, and frees the graph behind it")),
        help=_once(frame, call, first, name, other),
    )


def _once(frame: Frame, call: ast.Call, first: str, name: str, other: str) -> str:
    """Return advice on two losses with a shared part: those of a GAN, with a step between them, must be separated."""
    assert frame.node is not None
    between = [
        one
        for one in source_code.calls(frame.scope or frame.node)
        if isinstance(one.func, ast.Attribute) and one.func.attr in ("step", "zero_grad")
        if source_code.end(call) <= source_code.start(one) and source_code.end(one) <= source_code.start(frame.node)
    ]
    if between or not other.isidentifier():
        return f"compute `{first}` from `{name}.detach()`, unless it also trains the model behind `{name}`"
    return f"call backward once: `({first} + {other}).backward()`"


def _ran_before(frame: Frame, call: ast.Call, begun: ast.expr) -> bool:
    """Return True if a backward pass above has certainly run on the current value of its variable."""
    assert frame.file is not None
    assert frame.node is not None
    around = [frame.node, *frame.file.above(frame.node)]
    if not frame.file.always(call, around):
        return False
    setting = frame.reached(ast.unparse(begun))
    return setting is not None and source_code.end(setting.statement) <= source_code.start(call)


def _latest(crash: Crash, nodes: set[Any]) -> tuple[str, Origin | None] | None:
    """Return the variable with the latest result of these operations, and its origin."""
    best: tuple[int, str, Origin | None] | None = None
    for frame in reversed(crash.frames):
        for name, value in frame.names.items():
            if not frame_values.is_tensor(value) or value.grad_fn is None or value.grad_fn not in nodes:
                continue
            number = value.grad_fn._sequence_nr()
            if best is None or number > best[0]:
                best = (number, name, crash.origin(frame, ast.parse(name, mode="eval").body))
    return None if best is None else best[1:]


# --- from one iteration to the next ----------------------------------------------------------------------------------


def _carried(crash: Crash, frame: Frame, root: Any) -> PostMortem | None:
    """Explain the error by a variable that a loop carries to the next iteration with its graph."""
    assert frame.file is not None
    assert frame.node is not None
    if isinstance(frame.node, ast.Call) and any(word.arg == "retain_graph" for word in frame.node.keywords):
        return None  # another pass has freed the graph
    for loop in frame.file.loops(frame.node):
        outside = _from_outside(crash, frame, root, loop)
        if outside is not None:
            return outside
        read = read_for(frame)
        names = [entry for entry in carried_names(frame, loop) if entry[0] in read]
        kept = kept_by_module(crash)
        if names:
            return _by_names(crash, frame, names) if kept is None else None
        if kept is not None:
            return PostMortem(
                slug=SLUG,
                error="",
                message=f"`{kept.name}` carries the graph of the previous call, which a backward pass has freed",
                primary=crash.fails("goes back into the previous step, but its graph is freed"),
                related=(kept.mark,),
                help=f"cut the graph where it is kept: `{kept.cut}`",
            )
    return None


def _from_outside(crash: Crash, frame: Frame, root: Any, loop: ast.AST) -> PostMortem | None:
    """Explain the error by a tensor computed once, before the loop, that every iteration's backward goes through."""
    graph = behind(crash, root.grad_fn)
    inside = set(ast.walk(loop))
    used = {node.id for node in inside if isinstance(node, ast.Name)}
    best: tuple[int, str, Any] | None = None
    for name in used:
        value = frame.names.get(name, MISSING)
        if not frame_values.is_tensor(value) or value.grad_fn is None or value.grad_fn not in graph:
            continue
        setting = frame.reached(name)
        if setting is None or setting.statement in inside or setting.value is None:
            continue
        if all(node.name().rstrip("0123456789") in _SAVES_NOTHING for node in behind(crash, value.grad_fn)):
            continue
        number = value.grad_fn._sequence_nr()
        if best is None or number > best[0]:
            best = (number, name, setting)
    if best is None:
        return None
    _, name, setting = best
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{name}` was computed before the loop, and the first iteration's backward pass freed its graph",
        primary=crash.fails(f"frees the graph behind `{name}` in the first iteration, fails in the next"),
        related=(Mark(frame.place(setting.node), f"`{name}` is computed here, once"),),
        help=f"compute `{name}` inside the loop, or use `{name}.detach()` there if the model behind it is not trained",
    )


def _by_names(crash: Crash, frame: Frame, names: list[tuple[str, ast.AST, bool]]) -> PostMortem | None:
    statements = {id(statement) for _, statement, _ in names}
    if len(statements) != 1:
        return None
    statement, adds = names[0][1], names[0][2]
    listed = " and ".join(f"`{name}`" for name, _, _ in names)
    keeps = "keep" if len(names) > 1 else "keeps"
    if adds:
        return PostMortem(
            slug=SLUG,
            error="",
            message=f"{listed} {keeps} the graphs of earlier iterations, which their backward passes have freed",
            primary=crash.fails("goes back into the previous iteration, but its graph is freed"),
            related=(Mark(frame.place(statement), "adds this iteration's graph to those of earlier iterations"),),
            help=f"call backward on this iteration's loss alone, and add it up as `{names[0][0]} += loss.item()`",
        )
    cut = "; ".join(detached(name, frame) for name, _, _ in names)
    carry = "carry" if len(names) > 1 else "carries"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"{listed} {carry} the graph of the previous iteration, which is freed",
        primary=crash.fails("goes back into the previous iteration, but its graph is freed"),
        related=(Mark(frame.place(statement), f"uses {listed} of the previous iteration, with its graph"),),
        help=f"cut the graph at the end of each iteration: `{cut}`",
    )
