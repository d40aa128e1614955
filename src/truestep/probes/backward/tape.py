"""The autograd tape, read before the engine runs: names, shapes and ends, never a saved tensor, no node kept."""

from __future__ import annotations

from collections import deque
from typing import Any

from truestep.events import Site, TapeRead
from truestep.probes.backward.cuts import boundary, cut_between, switch
from truestep.probes.backward.gradient_reads import reads_gradients
from truestep.probes.backward.loss_terms.broadcasts import read_broadcasts
from truestep.probes.context.scene import Scene
from truestep.probes.forward.draws import is_marked
from truestep.seams.fsdp import is_freed, shards

_MOST_NODES = 50_000
_RISKY = {
    "LogBackward0", "Log2Backward0", "Log10Backward0", "Log1PBackward0", "DivBackward0", "SqrtBackward0",
    "RsqrtBackward0", "ReciprocalBackward0", "PowBackward0", "PowBackward1", "ExpBackward0", "NormBackward0",
    "AcosBackward0", "AsinBackward0", "AtanhBackward0", "LogitBackward0", "StdBackward0",
}  # fmt: skip
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
        read_broadcasts(scene, output.grad_fn, site)
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
