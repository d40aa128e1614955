"""The autograd tape, read before the engine runs: names, shapes and ends, never a saved tensor, no node kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from truestep.events import BroadcastOnTape, Site, TapeRead
from truestep.probes.backward.cuts import boundary, cut_between, switch
from truestep.probes.backward.gradient_reads import reads_gradients
from truestep.probes.backward.origin import shape_of
from truestep.probes.context.scene import Scene
from truestep.probes.forward.draws import is_marked
from truestep.seams.fsdp import is_freed, shards

_MOST_NODES = 50_000
_RISKY = {
    "LogBackward0", "Log2Backward0", "Log10Backward0", "Log1PBackward0", "DivBackward0", "SqrtBackward0",
    "RsqrtBackward0", "ReciprocalBackward0", "PowBackward0", "PowBackward1", "ExpBackward0", "NormBackward0",
    "AcosBackward0", "AsinBackward0", "AtanhBackward0", "LogitBackward0", "StdBackward0",
}  # fmt: skip
_REDUCTIONS = {
    "MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1", "LinalgVectorNormBackward0", "NormBackward0",
    "NormBackward1",
}  # fmt: skip
_BETWEEN = {
    "PowBackward0", "AbsBackward0", "MulBackward0", "DivBackward0", "SqrtBackward0", "LogBackward0", "Log1PBackward0",
    "CoshBackward0", "WhereBackward0", "ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0",
    "MaximumBackward0", "MinimumBackward0", "SoftplusBackward0", "ReluBackward0", "TanhBackward0",
}  # fmt: skip
"""Operations on the differences of a regression; not those of kernels, which are sums over pairs on purpose."""
_DIFFERENCES = {"SubBackward0", "RsubBackward0"}
_SUMS = {"AddBackward0", *_DIFFERENCES}
_ELEMENTWISE = {"MulBackward0", "DivBackward0", *_DIFFERENCES}
_TURNS = ("Unsqueeze", "Expand", "View", "Reshape", "Transpose", "TBackward", "Permute")
"""Beginnings of the names of operations that give a tensor another form."""
_PAIR = 2
_OF_TERMS = {"AddBackward0", "NegBackward0", *_DIFFERENCES}
_MOST_TERMS = 32
"""Operations between a loss and its terms that are looked at."""
_OPAQUE = ("CompiledFunctionBackward", "GraphTask", "torch::jit")
_TRANSPARENT = {"RegisterPostBackwardFunctionBackward"}
"""Custom functions that return their input (FSDP2 marks the end of a module with one)."""


def read_tape(scene: Scene, outputs: list[Any], site: Site | None) -> dict[int, int]:
    """Walk the tape from the outputs, breadth first, and emit an event about the parameters that the loss reaches.

    Returns:
        The number of each of these parameters, by its id.
    """
    queue: deque[tuple[Any, int]] = deque()
    reached: dict[int, int] = {}
    leaves: dict[int, int] = {}
    opaque = False
    seen: set[Any] = set()
    leaf_root, follows = True, bool(scene.losses.followed)
    draws, marked = scene.draws.pending, False
    sharded = shards()
    custom = scene.torch.autograd.function.BackwardCFunction
    for output in outputs:
        if output.grad_fn is not None:
            leaf_root = False
            queue.append((output.grad_fn, 0))
            seen.add(output.grad_fn)
    while queue and len(seen) < _MOST_NODES:
        node, depth = queue.popleft()
        name = node.name()
        if name == "torch::autograd::AccumulateGrad":
            variable = sharded.get(id(node.variable), node.variable)
            if is_freed(variable) or _is_flat(scene, variable):  # a tensor of FSDP: its parameters are unknown
                opaque = True
                continue
            held = scene.hold(variable)
            reached.setdefault(held.number, depth)
            leaves[id(variable)] = held.number
            _free(scene, held)
            continue
        if follows:
            scene.losses.met(node)
        marked = marked or (draws and is_marked(node))
        if name.startswith(_OPAQUE) or (isinstance(node, custom) and name not in _TRANSPARENT):
            opaque = True
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append((following, depth + 1))
    for output in outputs:
        _broadcast(scene, output.grad_fn, site)
        _spread(scene, output.grad_fn, site)
    scene.draws.tell(reached, marked, [one.grad_fn for one in outputs if one.grad_fn is not None], site)
    ordered = sorted(reached)
    without = {number: at for number, at in scene.ledger.without_grad.items() if number not in scene.ledger.forwarded}
    cut = next((cut for number, at in without.items() if number not in reached and (cut := switch(at))), None)
    between = boundary(scene.ledger.forwarded, reached, scene.sites.chain()) if cut is None else None
    cut = cut if between is None else cut_between(*between)
    scene.emit(
        TapeRead(
            site=site,
            nodes=len(seen),
            reached=tuple(ordered),
            forwarded=tuple(sorted(scene.ledger.forwarded)),
            without_grad=tuple(sorted(without)),
            depths=tuple(reached[number] for number in ordered),
            opaque=opaque or len(seen) >= _MOST_NODES,
            leaf_root=leaf_root,
            cut=cut[0] if cut else None,
            cut_by=cut[1] if cut else "",
            read=reads_gradients(site),
        )
    )
    return leaves


def _is_flat(scene: Scene, variable: Any) -> bool:
    """Return True if FSDP1 made it of several parameters, and the optimizer holds these."""
    if not getattr(variable, "_is_flat_param", False):
        return False
    held = scene.ledger.held(variable)
    return held is None or held.panel is None or held.panel is scene.ledger.free


def _free(scene: Scene, held: Any) -> None:
    """Watch a parameter outside of optimizers: the script may update it by hand."""
    free = scene.ledger.free
    if len(free.everything) >= 8 or held in free.everything:
        return
    if held.panel is None:
        free.add(held)
        scene.ledger.refresh()


def _broadcast(scene: Scene, root: Any, site: Site | None) -> None:
    """Look for a prediction (N, 1) or (N, ...) that a difference turned into (N, N, ...) in a term of the loss."""
    found = None
    for node in _differences(root):
        wide = shape_of(node)
        inputs = [(following, index) for following, index in node.next_functions if following is not None]
        if found is None and len(inputs) == 1 and is_table_of_calls(scene, wide, *inputs[0]):
            found = BroadcastOnTape(site=site, shape=(wide[0], 1), wide=wide)
        if len(wide) < _PAIR or wide[0] != wide[1] or wide[0] < _PAIR:
            continue
        if len(inputs) == _PAIR and wide not in [shape_of(*one) for one in inputs]:
            return  # pairs of predictions on purpose, as in an energy distance
        if len(inputs) != 1 or found is not None:
            continue
        child, index = inputs[0]
        if child.name().startswith(("Unsqueeze", "Expand", "View", "Reshape")):
            continue
        shape = shape_of(child, index)
        count, of_each = wide[0], wide[2:]
        narrow = ((count, *of_each),) if of_each else ((count, 1), (count,), (1, count))
        if shape in narrow:
            found = BroadcastOnTape(site=site, shape=shape, wide=wide)
    if found is not None:
        scene.emit(found)


def is_table_of_calls(scene: Scene, wide: tuple[int, ...], child: Any, index: int) -> bool:
    """Return True for a column, minus targets with as many columns as another call of its model had rows."""
    if len(wide) != _PAIR or shape_of(child, index) != (wide[0], 1):
        return False
    if child.name() != "CatBackward0":
        return not child.name().startswith(_TURNS) and scene.losses.are_calls(wide[0], wide)
    parts = {shape_of(*one) for one in child.next_functions if one[0] is not None}
    return parts == {(wide[1], 1)} and scene.losses.are_calls(wide[1], wide)


def _spread(scene: Scene, root: Any, site: Site | None) -> None:
    """Look for a prediction (N, 1, ...) that an operation near the loss spread over the samples of its targets."""
    queue, seen = deque([] if root is None else [root]), 0
    while queue and seen < _MOST_TERMS:
        node, seen = queue.popleft(), seen + 1
        inputs = [(following, index) for following, index in node.next_functions if following is not None]
        wide = shape_of(node) if node.name() in _ELEMENTWISE else ()
        shapes = [shape_of(*one) for one in inputs]
        if len(wide) > _PAIR and wide[0] == wide[1] > 1 and wide not in shapes:
            narrow = (wide[0], 1, *wide[2:])
            made = [child.name() for (child, _), shape in zip(inputs, shapes, strict=True) if shape == narrow]
            if made and not any(name.startswith(("Unsqueeze", "Expand", "View", "Reshape")) for name in made):
                scene.emit(BroadcastOnTape(site=site, shape=narrow, wide=wide))
                return
        queue.extend(following for following, _ in inputs)


def is_spread(node: Any, wide: tuple[int, ...]) -> bool:
    """Return True if an operation is a sum or a difference that broadcast all its operands with a gradient.

    Operands that were turned for it, as in ``x[:, None] - x[None]``, are pairs on purpose.
    """
    inputs = [(following, index) for following, index in node.next_functions if following is not None]
    if node.name() not in _SUMS or any(following.name().startswith(_TURNS) for following, _ in inputs):
        return False
    return bool(inputs) and wide not in [shape_of(*one) for one in inputs]


def _differences(root: Any) -> Iterator[Any]:
    """Yield the differences of tensors that a loss is made of by means, sums and operations on each element."""
    queue = deque([] if root is None else [root])
    for _ in range(_MOST_TERMS):
        if not queue:
            return
        node = queue.popleft()
        name = node.name()
        shape = shape_of(node)
        if name in _DIFFERENCES and shape:
            yield node
        if name in _REDUCTIONS | _BETWEEN or (name in _OF_TERMS and (not shape or _is_of_pairs(node, shape))):
            queue.extend(following for following, _ in node.next_functions if following is not None)


def _is_of_pairs(node: Any, shape: tuple[int, ...]) -> bool:
    """Return True for a sum or a difference of square tables, such as the second case of a Huber loss."""
    shapes = {shape_of(following, index) for following, index in node.next_functions if following is not None}
    return len(shape) == _PAIR and shape[0] == shape[1] and shapes == {shape}


def risky_operations(node: Any) -> tuple[str, ...]:
    """Return operations near the loss that can make NaN or infinity, nearest first."""
    found: list[str] = []
    seen: set[Any] = set()
    queue: deque[Any] = deque([node] if node is not None else [])
    while queue and len(seen) < 200:
        current = queue.popleft()
        if current is None or current in seen:
            continue
        seen.add(current)
        name = current.name()
        if name in _RISKY and name not in found:
            found.append(name)
        queue.extend(following for following, _ in current.next_functions)
    return tuple(found[:4])
