"""Targets of losses written by hand: values in the graph of a loss that were combined with the result of a model.

`((pred - y) ** 2).mean()` keeps the difference, `(y * log_p).sum()` the factor, `log_p[range(n), y]` and `gather` the
index. They are read where no hook of the program would run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.probes.active.rows.calls import Calls
from truestep.probes.active.rows.fetched import Located, sampled
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import Node, has_values, key_of, saved

_MOST_NODES = 1_000
_MOST_TARGETS = 6
_MOST_CELLS = 1 << 22
_OF_DIFFERENCES = ("PowBackward0", "AbsBackward0", "LinalgVectorNormBackward0", "NormBackward1")
_SAVED = {
    "MulBackward0": ("other", "self"), "GatherBackward0": ("index",), "IndexBackward0": ("indices",),
    "WhereBackward0": ("condition",), "XlogyBackward0": ("self",),
}  # fmt: skip
_SUBTRACTIONS = ("SubBackward0", "RsubBackward1", "RsubBackward0")
_VIEWS = ("View", "Squeeze", "Unsqueeze", "Reshape", "UnsafeView", "Alias", "Clone", "Expand")
_ACTIVATIONS = ("Sigmoid", "Tanh", "Exp", "Softmax", "Relu")
_CHOOSING = ("Select", "Unbind")
_COLUMNS = (1, (1 << 64) - 1)
"""The second dimension, or the last one."""
_MOST_VIEWS = 6
_OF_SIZE = 1e-4
_MOST_COLUMNS = 16


class Written(NamedTuple):
    """A target in the graph of a loss."""

    located: Located
    """Rows of the result that it is combined with."""
    values: Any
    """Its values, as a table."""
    differs: bool = False
    """True if the values are differences of the result and the target."""
    predicted: Any = None
    """The result of such a difference."""


def targets_of(scene: Scene, calls: Calls, root: Any) -> Iterator[Written]:
    """Yield the targets in the graph of a loss, above the results of models."""
    seen: set[Node] = set()
    queue, count = [root], 0
    last = {node for made in calls.kept for node in made.nodes}
    while queue and len(seen) < _MOST_NODES and count < _MOST_TARGETS:
        node = queue.pop(0)
        key = key_of(node)
        if key in seen or key in last:
            continue
        seen.add(key)
        for written in _at(scene, calls, node):
            count += 1
            yield written
        queue += [following for following, _ in node.next_functions if following is not None]


def _at(scene: Scene, calls: Calls, node: Any) -> Iterator[Written]:
    """Yield the targets that one operation combines with a result."""
    name = str(node.name())
    below = [following for following, _ in node.next_functions if following is not None]
    squared = name == "MulBackward0" and len(below) > 1 and key_of(below[0]) == key_of(below[1])
    if name in _OF_DIFFERENCES or squared:
        yield from _of_difference(scene, calls, node, below[0])
        return
    if len(below) != 1:
        return
    for part in _SAVED.get(name, ()):
        kept = saved(node, part)
        for one in kept if isinstance(kept, tuple | list) else (kept,):
            value = _plain(scene, one)
            if value is None or value.requires_grad:
                continue
            located = calls.order_of(below[0])
            if located is not None and _fits(value, located):
                yield Written(located, sampled(scene, value, len(located.places)))


def _of_difference(scene: Scene, calls: Calls, node: Any, inner: Any) -> Iterator[Written]:
    """Yield the target of a difference of a result and a target."""
    if str(inner.name()) not in _SUBTRACTIONS:
        return
    tracked = [edge for edge in inner.next_functions if edge[0] is not None]
    difference = _plain(scene, saved(node, "self"))
    if difference is None or len(tracked) != 1:
        return
    located = calls.order_of(tracked[0][0])
    if located is None or not _fits(difference, located):
        return
    value, table = _result(scene, calls, *tracked[0]), sampled(scene, difference, len(located.places))
    if value is not None and table.shape == value.shape:
        yield Written(located, table, differs=True, predicted=value)


def given_for(torch: Any, written: Written, expected: Any) -> Any:
    """Return the values of a target, to be compared with the expected rows; None if they are others.

    A difference gives its target up to rounding only: its rows are replaced by the expected ones that they are closest
    to, if they are close to one each.
    """
    if not written.differs:
        return written.values
    size = float(written.values.abs().max()) + float(written.predicted.abs().max()) + 1e-12
    width = written.values.shape[1]
    for target in (written.predicted - written.values, written.predicted + written.values):
        whole = target.round()
        if float((target - whole).abs().max()) <= _OF_SIZE * size:
            return whole
        for part in expected.T[:, :, None] if width == 1 and expected.shape[1] <= _MOST_COLUMNS else [expected]:
            if part.shape == target.shape:
                near = torch.cdist(target.double(), part.double()).min(1)
                if float(near.values.max()) <= _OF_SIZE * size * width**0.5:
                    return part[near.indices]
    return None


def _result(scene: Scene, calls: Calls, node: Any, output: int) -> Any:
    """Return the values of a result of a model, below operations that change its shape or choose a column of it."""
    column: int | None = None
    for _ in range(_MOST_VIEWS):
        key, name = key_of(node), str(node.name())
        found = next((made.values[key, output] for made in calls.kept if (key, output) in made.values), None)
        if found is None and name.startswith(_ACTIVATIONS) and column is None:
            result = _plain(scene, saved(node, "result"))
            return None if result is None or not result.dim() else sampled(scene, result, len(result))
        if found is not None:
            return found if column is None else found[:, column, None] if column < found.shape[1] else None
        if name.startswith(_CHOOSING) and column is None and getattr(node, "_saved_dim", 0) in _COLUMNS:
            column = output if name.startswith("Unbind") else int(getattr(node, "_saved_index", 0))
        elif not name.startswith(_VIEWS):
            return None
        node, output = node.next_functions[0]
        if node is None:
            return None
    return None


def _plain(scene: Scene, value: Any) -> Any:
    tensor = (
        type(value) is scene.torch.Tensor and value.is_cpu and has_values(value) and value.layout is scene.torch.strided
    )
    return value if tensor and 0 < value.numel() <= _MOST_CELLS and not value.is_complex() else None


def _fits(value: Any, located: Located) -> bool:
    rows = len(located.places)
    return value.dim() > 0 and len(value) > 1 and value.numel() % rows == 0 and (len(value) == rows or value.dim() == 1)
