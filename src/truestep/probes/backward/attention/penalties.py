"""Penalties on the norm of gradients: whether the norm is that of each sample, over all of its dimensions."""

from __future__ import annotations

from collections import deque
from typing import Any

from truestep.events import PenaltyRead, Site
from truestep.probes.backward.loss_terms.mask_forms import signed
from truestep.probes.backward.origin import shape_of
from truestep.probes.backward.signs import terms_of
from truestep.probes.context.sampling import FirstReads
from truestep.probes.context.scene import Scene

_NORMS = ("LinalgVectorNormBackward0", "NormBackward0", "NormBackward1")
_SHIFTS = ("SubBackward0", "SubBackward1", "RsubBackward1", "AddBackward0", "AddBackward1")
_ABOVE = ("ReluBackward0", "ClampMinBackward0", "ClampBackward0", "ClampBackward1")
_TWICE = "BackwardBackward"
"""Part of the name of an operation that differentiates another one."""
_MOST_BELOW = 60
_SEQUENCE = 3
"""Dimensions of a batch of sequences, of which each position can have a score, and so a norm, for itself."""


class Penalties:
    """Reads the penalties on the tapes of the first losses of each line."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._reads = FirstReads()

    def look(self, root: Any, site: Site | None) -> None:
        """Emit the first penalty of a loss on the distance of the norm of gradients from a number."""
        if root is None or not self._reads.is_next(site):
            return
        for node, _ in terms_of(root):
            norm = _norm_of(node)
            vectors = None if norm is None else norm.next_functions[0][0]
            if vectors is not None and _is_differentiated(vectors):
                shape = shape_of(vectors)
                self.scene.emit(PenaltyRead(site=site, over=_over(norm, shape), shape=shape))
                return


def _norm_of(node: Any) -> Any:
    """Return the norm in a square of its distance from a number, or of the part above it; None for others."""
    inner = [following for following, _ in node.next_functions]
    name = str(node.name())
    square = name == "PowBackward0" and node._saved_exponent == 2
    if not square and not (name == "MulBackward0" and len(inner) == 2 and inner[0] is inner[1]):
        return None
    node = inner[0]
    for _ in range(2):
        inner = [] if node is None else [following for following, _ in node.next_functions if following is not None]
        if len(inner) != 1:
            return None
        if str(node.name()) in _SHIFTS:
            return inner[0] if str(inner[0].name()) in _NORMS else None
        if str(node.name()) not in _ABOVE:
            return None
        node = inner[0]
    return None


def _over(norm: Any, shape: tuple[int, ...]) -> str:
    """Return "batch" for a norm of all samples, "position" for one of each position, and "" for one of each sample."""
    dims = getattr(norm, "_saved_dim", None)
    given = [] if dims is None else [signed(int(dim)) % len(shape) for dim in dims]
    if len(shape) < 2 or shape[0] < 2:
        return ""
    if not given or len(given) == len(shape):
        return "batch"
    if 0 in given:
        return ""
    left = [size for dim, size in enumerate(shape) if dim and dim not in given]
    if max(left, default=1) == 1:
        return ""
    return "" if len(shape) == _SEQUENCE and given != [1] else "position"


def _is_differentiated(node: Any) -> bool:
    """Return True for a tensor that was computed by a backward pass with a graph."""
    queue, seen = deque([node]), {node}
    while queue and len(seen) < _MOST_BELOW:
        node = queue.popleft()
        if _TWICE in str(node.name()):
            return True
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append(following)
    return False
