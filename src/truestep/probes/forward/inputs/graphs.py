"""Edges of batches of graphs, compared with the numbers of the graphs that their nodes belong to.

The nodes of a batch are numbered on from graph to graph. Edges that keep the numbers within a graph all join nodes
of the first ones.
"""

from __future__ import annotations

from typing import Any

from truestep.events import EdgesRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values

_READS = 4
"""Reads of a model."""
_LARGEST = 1 << 20
_LEAST_GRAPHS = 4
_PAIR = 2


class Graphs:
    """Emits `EdgesRead` for the first batches of graphs of each model.

    Args:
        scene: the scene.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._left: dict[int, int] = {}

    def look(self, model: int, args: tuple[Any, ...], site: Site | None) -> None:
        """Compare the edges among the arguments of a call with the graphs of its nodes."""
        left = self._left.get(model, _READS)
        if not left:
            return
        torch = self._scene.torch
        whole = [one for one in args if type(one) is torch.Tensor and one.dtype is torch.int64 and _is_readable(one)]
        edges = [one for one in whole if one.dim() == _PAIR and one.shape[0] == _PAIR < one.shape[1]]
        numbers = [one for one in whole if one.dim() == 1 and one.numel() > _PAIR]
        for pairs in edges:
            for graphs in numbers:
                nodes = graphs.numel()
                if not any(type(one) is torch.Tensor and one.dim() and one.shape[0] == nodes for one in args[:1]):
                    continue
                with self._scene.sampling.timed(graphs):
                    sizes = _sizes(torch, graphs)
                    if sizes is None or not bool((pairs >= 0).all()) or not bool((pairs < nodes).all()):
                        continue
                    self._left[model] = left - 1
                    last, largest = int(pairs.max()), int(sizes.max())
                    first = last < largest and _PAIR * largest <= nodes <= _PAIR * pairs.shape[1]
                self._scene.tell(
                    EdgesRead,
                    model=model,
                    graphs=sizes.numel(),
                    nodes=nodes,
                    edges=pairs.shape[1],
                    without=nodes - 1 - last if first else 0,
                    site=site,
                )
                return


def _sizes(torch: Any, graphs: Any) -> Any:
    """Return the number of nodes of each graph of a batch; None if these numbers are not those of graphs."""
    steps = graphs.diff()
    if int(graphs[0]) or int(graphs[-1]) < _LEAST_GRAPHS - 1 or not bool(((steps == 0) | (steps == 1)).all()):
        return None
    sizes = torch.bincount(graphs)
    return sizes if int(sizes.max()) >= _PAIR else None


def _is_readable(value: Any) -> bool:
    return value.is_cpu and has_values(value) and 0 < value.numel() <= _LARGEST
