"""Log-probabilities that a loss picks along another dimension than that of their softmax, as of actions by hand."""

from __future__ import annotations

from collections import deque
from typing import Any

from truestep.events import PickedAcross, Site
from truestep.probes.backward.origin import RESHAPING, SELECTING
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved

_THROUGH = frozenset(
    {"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1", "AddBackward0", "SubBackward0", "RsubBackward0",
     "RsubBackward1", "NegBackward0", "MulBackward0", "DivBackward0", "ExpBackward0", "MinimumBackward0",
     "MaximumBackward0", "WhereBackward0", "ClampBackward0", "ClampBackward1", "LogBackward0", *RESHAPING, *SELECTING}
)  # fmt: skip
_SOFTMAX = ("LogSoftmaxBackward0", "SoftmaxBackward0")
_MOST = 96


def read_picked(scene: Scene, root: Any, site: Site | None) -> None:
    """Emit an event for the first ``gather`` near a loss that picks along another dimension than the softmax before."""
    queue = deque([] if root is None else [root])
    seen: set[Any] = set()
    while queue and len(seen) < _MOST:
        node = queue.popleft()
        if node in seen:
            continue
        seen.add(node)
        name = str(node.name())
        if name == "GatherBackward0":
            found = _across(node)
            if found is not None:
                scene.tell(PickedAcross, site=site, over=found[0], along=found[1], shape=found[2])
                return
        elif name in _THROUGH:
            queue.extend(following for following, _ in node.next_functions if following is not None)


def _across(node: Any) -> tuple[int, int, tuple[int, ...]] | None:
    """Return the dimension of the softmax, that of the choice, and the shape, if each choice is one of many in its row.

    A choice that is the same for all numbers of a softmax is one of a place, such as the last word of each text.
    """
    made = node.next_functions[0][0]
    if made is None or str(made.name()) not in _SOFTMAX:
        return None
    shape = tuple(made._input_metadata[0].shape)
    over, along = _dim(made, len(shape)), _dim(node, len(shape))
    index = saved(node, "index")
    if over == along or index is None or not has_values(index) or len(index.shape) != len(shape):
        return None
    if index.shape[along] != 1 or shape[along] < 2 or shape[over] < 2 or index.shape[over] != shape[over]:
        return None
    alike = bool((index == index.narrow(over, 0, 1)).all())
    return None if alike else (over, along, shape)


def _dim(node: Any, rank: int) -> int:
    """Return the dimension of an operation, counted from the first one."""
    dim = int(node._saved_dim)
    return (dim if dim < 1 << 32 else dim - (1 << 64)) % max(rank, 1)
