"""Graphs retained by `retain_graph=True`: a token on their operations shows if another pass uses them.

All operations of a graph share a token, so it dies with the last of them: from then on nothing can use the graph.
While it lives, the tape of every new pass is walked: a graph that the pass goes through was retained for a reason.
"""

from __future__ import annotations

import weakref
from typing import Any

from truestep.events import GraphsChained, GraphsRetained, Site
from truestep.probes.backward.kept_graphs import graph_size
from truestep.probes.context.scene import Scene

_ENOUGH = 24
_MOST_MARKS = 40
_MOST_NODES = 20_000
_NEAR = 4
"""Steps after which a graph that is still alive is no longer followed."""
_CHAINED = (16, 32)
_KEY = "truestep retained"


class _Token:
    """Lives as long as any operation of its graph."""

    __slots__ = ("__weakref__", "graph")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Line:
    """A line with backward passes that retain their graphs."""

    __slots__ = ("followed", "marks", "nodes", "outlived", "reach", "reported", "site", "size", "used")

    def __init__(self, site: Site | None) -> None:
        self.site = site
        self.marks = self.followed = self.outlived = self.used = 0
        self.reach = 0
        """Largest number of graphs of earlier steps that a pass of this line went through."""
        self.nodes = self.size = 0
        self.reported = False


class Graph:
    """One retained graph."""

    __slots__ = ("line", "outlived", "ref", "step", "used")

    def __init__(self, line: Line, step: int) -> None:
        self.line = line
        self.step = step
        self.ref: weakref.ref[_Token] | None = None
        self.used = self.outlived = False

    def is_alive(self) -> bool:
        return self.ref is not None and self.ref() is not None

    def met(self) -> None:
        """Run when a model records a new graph: is this one still in memory beside it?"""
        if not self.outlived:
            self.outlived = self.is_alive()


class Retained:
    """Follows the graphs that backward passes retain, the first ones of each line and those of sampled steps."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._lines: dict[int, Line] = {}

    def look(self, outputs: Any, site: Site | None, *, retains: bool) -> None:
        """Run before a pass enters the engine."""
        scene = self.scene
        self._settle()
        line = self._line(site) if retains else None
        if line is not None and not self._is_wanted(line):
            line = None
        if line is None and not scene.losses.retained:
            return
        nodes = _walk(outputs)
        known = [(node, node.metadata.get(_KEY)) for node in nodes]
        for graph in {id(entry[1]): entry[1].graph for _, entry in known if entry is not None}.values():
            self._uses(graph)
        if line is None or len(nodes) >= _MOST_NODES:
            return
        reach = len({entry[0] for _, entry in known if entry is not None and entry[0] < scene.sampling.step})
        if reach > line.reach:
            line.reach = reach
            if reach in _CHAINED:
                scene.emit(GraphsChained(site=site, steps=reach, nodes=len(nodes)))
        if line.marks == 0:
            line.nodes, line.size = graph_size(outputs[0].grad_fn)
        line.marks += 1
        graph = Graph(line, scene.sampling.step)
        token = _Token(graph)
        entries = {scene.sampling.step: (scene.sampling.step, token)}
        for node, entry in known:
            born = scene.sampling.step if entry is None else entry[0]
            node.metadata[_KEY] = entries.setdefault(born, (born, token))
        graph.ref = weakref.ref(token)
        scene.losses.retained.append(graph)

    def _line(self, site: Site | None) -> Line:
        line = self._lines.get(id(site))
        if line is None:
            line = self._lines[id(site)] = Line(site)
        return line

    def _is_wanted(self, line: Line) -> bool:
        """Return True if the next graph of this line is to be followed."""
        if line.reported and self.scene.sampling.on and not line.used:
            return True
        return line.marks < _MOST_MARKS and not (line.used and not line.reach)

    def _uses(self, graph: Graph) -> None:
        """Record that a pass goes through a retained graph."""
        if graph.used:
            return
        graph.used = True
        graph.line.used += 1
        if graph.line.reported and graph.line.used == 1:
            self._tell(graph.line)

    def _settle(self) -> None:
        """Process the graphs that were freed, and stop following those that stay."""
        left: list[Graph] = []
        for graph in self.scene.losses.retained:
            if self.scene.sampling.step - graph.step > _NEAR:
                continue
            if graph.is_alive():
                left.append(graph)
                continue
            line = graph.line
            line.followed += 1
            line.outlived += graph.outlived
            if line.followed == _ENOUGH and not line.reported:
                line.reported = True
                self._tell(line)
        self.scene.losses.retained[:] = left

    def _tell(self, line: Line) -> None:
        self.scene.emit(
            GraphsRetained(
                site=line.site,
                followed=line.followed,
                used=line.used,
                outlived=line.outlived,
                nodes=line.nodes,
                kept_bytes=line.size,
            )
        )


def _walk(outputs: Any) -> list[Any]:
    """Return the operations that a pass goes through, without those that accumulate gradients of parameters."""
    todo = [output.grad_fn for output in outputs if getattr(output, "grad_fn", None) is not None]
    seen = set(todo)
    nodes: list[Any] = []
    while todo and len(nodes) < _MOST_NODES:
        node = todo.pop()
        if node.name() == "torch::autograd::AccumulateGrad":
            continue
        nodes.append(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    return nodes
