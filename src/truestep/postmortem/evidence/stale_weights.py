"""A backward pass that needs weights which an optimizer step has changed since: the step, and the carried graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from truestep.findings import Mark, PostMortem
from truestep.postmortem.evidence import frame_values, source_code
from truestep.postmortem.evidence.carried import carried_names, detached, kept_by_module, read_for
from truestep.postmortem.evidence.crash import MISSING, Crash, Frame

SLUG = "modified-in-place"


def stepped(crash: Crash, sizes: tuple[int, ...], got: int, versions: tuple[str, str]) -> PostMortem | None:
    """Explain a step that changed weights between the forward pass and this backward pass."""
    weights = [entry for entry in _weights(crash) if _fits(entry[1], sizes, got)]
    for frame in crash.frames[-1:]:
        if frame.node is None or frame.file is None or frame.scope is None:
            continue
        steps: dict[ast.Call, tuple[str, list[tuple[str, Any]]]] = {}
        for call, optimizer in _steps(frame):
            theirs = {id(p) for group in optimizer.param_groups for p in group["params"]}
            hit = [(name, weight) for name, weight in weights if id(weight) in theirs]
            if hit and _between(frame, call, {id(weight) for _, weight in hit}) is not None:
                steps[call] = (ast.unparse(call.func), hit)
        if len(steps) == 1:
            ((call, (step, hit)),) = steps.items()
            forward = _between(frame, call, {id(weight) for _, weight in hit})
            if forward is not None:
                return _by_step(crash, frame, call, step, hit, forward, versions)
        if steps:
            return None
        return _carried(crash, frame, weights, versions)
    return None


def _by_step(
    crash: Crash,
    frame: Frame,
    call: ast.AST,
    step: str,
    hit: list[tuple[str, Any]],
    forward: ast.Call,
    versions: tuple[str, str],
) -> PostMortem:
    what = _named(hit)
    called = ast.unparse(forward) if len(ast.unparse(forward)) <= 40 else f"{ast.unparse(forward.func)}(...)"
    return PostMortem(
        slug=SLUG,
        error="",
        message=f"`{step}()` changed weights that this backward pass still needs",
        primary=crash.fails("fails here: the weights are no longer those of the forward pass"),
        related=(
            Mark(frame.place(forward), "the forward pass used the weights from before the step"),
            Mark(frame.place(call), f"changed {what}" if len(hit) == 1 else f"changed them, among them {what}"),
        ),
        facts=(versions,),
        help=f"call `{called}` again after `{step}()`, and compute this loss from that",
    )


def _carried(
    crash: Crash, frame: Frame, weights: list[tuple[str, Any]], versions: tuple[str, str]
) -> PostMortem | None:
    """Explain a variable carried by a loop, with a graph that needs the weights from before an earlier step.

    It is known here that no step lies between the forward pass of this iteration and its backward pass.
    """
    assert frame.file is not None
    failing = frame.node
    for loop in frame.file.loops(failing) if failing is not None else ():
        inside = set(ast.walk(loop))
        steps = [(call, optimizer) for call, optimizer in _steps(frame) if call in inside]
        changed = [(call, [entry for entry in weights if _holds(optimizer, entry[1])]) for call, optimizer in steps]
        changed = [(call, hit) for call, hit in changed if hit]
        found = _carrier(crash, frame, loop)
        if len(changed) != 1 or found is None:
            continue
        (call, hit), (carrier, uses, cut) = changed[0], found
        retains = isinstance(failing, ast.Call) and any(word.arg == "retain_graph" for word in failing.keywords)
        return PostMortem(
            slug=SLUG,
            error="",
            message=f"{carrier} the graph of the previous iteration, "
            f"which needs the weights from before `{ast.unparse(call.func)}()`",
            primary=crash.fails("goes back into the previous iteration, but its weights were changed"),
            related=(uses, Mark(frame.place(call), f"changed {_named(hit)} after that iteration")),
            facts=(versions,),
            help=f"cut the graph at the end of each iteration: `{cut}`"
            + (", and call backward without `retain_graph`" if retains else ""),
        )
    return None


def _carrier(crash: Crash, frame: Frame, loop: ast.AST) -> tuple[str, Mark, str] | None:
    """Return the only carried variable or attribute with its verb, the line that carries it, and code that cuts it."""
    read = read_for(frame)
    names = [(name, statement) for name, statement, adds in carried_names(frame, loop) if name in read and not adds]
    kept = kept_by_module(crash)
    if kept is not None:
        return None if names else (f"`{kept.name}` carries", kept.mark, kept.cut)
    if len({id(statement) for _, statement in names}) != 1:
        return None
    listed = " and ".join(f"`{name}`" for name, _ in names)
    uses = Mark(frame.place(names[0][1]), f"uses {listed} of the previous iteration, with its graph")
    cut = "; ".join(detached(name, frame) for name, _ in names)
    return f"{listed} {'carry' if len(names) > 1 else 'carries'}", uses, cut


def _holds(optimizer: Any, weight: Any) -> bool:
    return any(p is weight for group in optimizer.param_groups for p in group["params"])


def _named(hit: list[tuple[str, Any]]) -> str:
    """Return the name and shape of the weight, or that it is one of several weights of this shape."""
    name, weight = hit[0]
    shape = frame_values.shape(weight.shape)
    return f"`{name}` {shape}" if len(hit) == 1 else f"`{name}` or another of {len(hit)} weights of shape {shape}"


def _weights(crash: Crash) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    for root, module, _ in crash.modules():
        for path, one in frame_values.tree(module, "" if root == "self" else root):
            crash.check()
            for key, weight in frame_values.parameters(one).items():
                if frame_values.is_tensor(weight) and id(weight) not in seen:
                    seen.add(id(weight))
                    yield (f"{path}.{key}" if path else key), weight


def _fits(weight: Any, sizes: tuple[int, ...], got: int) -> bool:
    """Return True if the message is about this weight: a saved tensor may be transposed, with the same version."""
    return weight._version == got and sorted(weight.shape) == sorted(sizes)


def _steps(frame: Frame) -> Iterator[tuple[ast.Call, Any]]:
    """Yield the calls in a frame's code that step an optimizer, directly or through a scaler."""
    if frame.scope is None:
        return
    for call in source_code.calls(frame.scope):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            continue
        for node in (call.func.value, *call.args[:1]):
            value = frame.value(node)
            if value is not MISSING and frame_values.is_optimizer(value):
                yield call, value


def _between(frame: Frame, step: ast.AST, weights: set[int]) -> ast.Call | None:
    """Return the call of a model with these weights that ran before the step, which ran before the failed line."""
    file, scope, failing = frame.file, frame.scope, frame.node
    if file is None or scope is None or failing is None:
        return None
    around = [failing, *file.above(failing)]
    loops = file.loops(failing)
    begun = failing.func.value if isinstance(failing, ast.Call) and isinstance(failing.func, ast.Attribute) else failing
    made = [call for node in file.sources(scope, begun) for call in _calls_in(node) if _uses(frame, call, weights)]
    if not made:
        everywhere = [call for call in source_code.calls(scope) if _uses(frame, call, weights)]
        made = everywhere if len(everywhere) == 1 and file.always(everywhere[0], around) else []
    earlier = [call for call in made if source_code.end(call) <= source_code.start(failing)]
    if not earlier:
        return None
    forward = max(
        (call for call in earlier if source_code.end(call) <= source_code.start(step)),
        default=earlier[-1],
        key=source_code.start,
    )
    if source_code.end(forward) <= source_code.start(step) and source_code.end(step) <= source_code.start(failing):
        return forward if file.always(step, around) else None
    # The step ran in an earlier iteration of a loop that does not contain the forward pass.
    outside = [loop for loop in loops if forward not in set(ast.walk(loop))]
    return forward if any(step in set(ast.walk(loop)) for loop in outside) else None


def _calls_in(node: ast.AST) -> Iterator[ast.Call]:
    yield from (one for one in ast.walk(node) if isinstance(one, ast.Call))


def _uses(frame: Frame, call: ast.Call, weights: set[int]) -> bool:
    value = frame.value(call.func)
    if value is MISSING or not frame_values.is_module(value):
        return False
    return any(id(p) in weights for _, one in frame_values.tree(value) for p in frame_values.parameters(one).values())
