"""Outputs of a linear layer that a loss reads by their place: one of them twice, and another one not at all.

The tape shows which columns of the result of a layer are selected, in the first passes of each line. At the end of the
run, an output that was not read has the weights that it had then: no loss of another line, and no later pass, read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.events import ColumnsUnread, Event, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.seams.refs import Ref

_SAME_COLUMNS = {"CloneBackward0", "AliasBackward0", "ToCopyBackward0"}
_FORMS = {"ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1"}
_PARTS = ("Split", "Chunk", "Unbind")
_LEAF = "torch::autograd::AccumulateGrad"
_PAIR = 2
_MOST_COLUMNS = 256
_MOST_SELECTIONS = 256
_LEAST_CLOSE = 1e-5

Users = dict[Any, list[tuple[Any, int]]]
"""Operation to those that read its results, each with the number of the result."""


class _Selected(NamedTuple):
    """Columns of a result; of a single one the dimension of the columns is gone."""

    node: Any
    output: int
    columns: list[int]
    dimension: int | None


class _Unread(NamedTuple):
    weight: Ref
    along: int
    outputs: int
    unread: list[int]
    again: list[int]
    first: Any
    """Rows of the weight at the first pass, first those of the columns that were not read."""
    site: Site | None


class Columns:
    """Columns that the first passes do not read, and their weights."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._found: dict[int, _Unread] = {}
        self._complete: set[int] = set()
        """Weights with a pass that read all columns, or other ones."""
        self._idle: dict[int, bool] = {}
        """Weight to True if the outputs that are read twice have moved."""

    def look(self, node: Any, number: int, weight: Any, along: int, users: Users, site: Site | None) -> None:
        """Compare the columns of the result of a layer with those that a loss reads.

        Args:
            node: the product of the layer.
            number: the number of its weight.
            weight: its weight, a matrix.
            along: its dimension of the outputs: 0, or 1 for a product by hand.
            users: readers of each operation.
            site: the backward pass.
        """
        outputs = int(weight.shape[along])
        if number in self._complete or not 1 < outputs <= _MOST_COLUMNS:
            return
        reads = _reads(node, outputs, users)
        unread = [column for column in range(outputs) if reads is not None and not reads[column]]
        again = [column for column in range(outputs) if reads is not None and reads[column] > 1]
        known = self._found.get(number)
        # A wrong place costs one output and reads another once more; fewer are a choice of a few outputs on purpose.
        instead = sum(reads[column] - 1 for column in again) >= len(unread) if reads is not None else False
        if not unread or not (instead or known) or not has_values(weight):
            self._complete.add(number)
            self._found.pop(number, None)
        elif known is None:
            rows = _rows(weight, along, [*unread, *again]).clone()
            self._found[number] = _Unread(Ref(weight), along, outputs, unread, again, rows, site)
        elif not set(known.unread) <= set(unread):
            self._complete.add(number)
            self._found.pop(number)

    def compare(self) -> None:
        """Compare the weights with those of the first pass: the outputs that are read twice move, and the others not.

        A model may be freed before the end: the latest comparison is kept.
        """
        for number, found in list(self._found.items()):
            weight = found.weight()
            if weight is None or not has_values(weight):
                continue
            with self._scene.torch.no_grad():
                rows, count = _rows(weight, found.along, [*found.unread, *found.again]), len(found.unread)
                kept = _is_scaled(found.first[:count], rows[:count])
                moved = not _is_scaled(found.first[count:], rows[count:])
            if kept:
                self._idle[number] = self._idle.get(number, False) or moved
            else:  # another pass reads them
                self._complete.add(number)
                self._found.pop(number)

    def last(self) -> Iterator[Event]:
        """Yield an event about each layer with weights of outputs that moved, and of others that did not."""
        self.compare()
        for number, found in self._found.items():
            if self._idle.get(number, False):
                yield ColumnsUnread(
                    parameter=number,
                    unread=tuple(found.unread),
                    again=tuple(found.again),
                    outputs=found.outputs,
                    site=found.site,
                )


def _rows(weight: Any, along: int, outputs: list[int]) -> Any:
    """Return the weights of these outputs, one row each."""
    return weight.detach().movedim(along, 0)[outputs]


def _is_scaled(first: Any, now: Any) -> bool:
    """Return True for equal values, and for all of them multiplied by one number, as weight decay does."""
    size = float(first.norm()) ** 2
    factor = float((first * now).sum()) / size if size else 1.0
    return 0 < factor <= 1 + _LEAST_CLOSE and float((now - factor * first).norm()) <= _LEAST_CLOSE * size**0.5


def _reads(node: Any, outputs: int, users: Users) -> Counter[int] | None:
    """Return how often each column is selected; None if an operation reads all of them, or in an unknown way."""
    shape = _shape(node, 0)
    if not shape or shape[-1] != outputs:
        return None
    reads: Counter[int] = Counter()
    queue = [_Selected(node, 0, list(range(outputs)), len(shape) - 1)]
    for _ in range(_MOST_SELECTIONS):
        if not queue:
            return reads
        part, used = queue.pop(), False
        for user, output in users.get(part.node, ()):
            if output == part.output:
                following = _selected(user, part)
                used |= following is None
                queue += following or []
        if used and len(part.columns) == outputs:
            return None
        if used:
            reads.update(part.columns)
    return None


def _selected(user: Any, part: _Selected) -> list[_Selected] | None:
    """Return the columns in the results of an operation that selects or keeps them; None for another operation."""
    if part.dimension is None:
        return None
    name = user.name()
    if name in _SAME_COLUMNS or _adds_bias(user):
        return [part._replace(node=user, output=0)]
    shape = _shape(user, 0)
    if name in _FORMS:
        last = part.dimension == len(_shape(part.node, part.output)) - 1
        keeps = last and bool(shape) and shape[-1] == len(part.columns)
        return [_Selected(user, 0, part.columns, len(shape) - 1)] if keeps else None
    if name == "SelectBackward0":
        along = _signed(user._saved_dim)
        if along == part.dimension:
            return [_Selected(user, 0, [part.columns[_signed(user._saved_index)]], None)]
        return [part._replace(node=user, output=0, dimension=part.dimension - (along < part.dimension))]
    if name == "SliceBackward0":
        columns = part.columns
        if _signed(user._saved_dim) == part.dimension:
            columns = columns[_signed(user._saved_start) : _signed(user._saved_end) : _signed(user._saved_step)]
        return [part._replace(node=user, output=0, columns=columns)]
    if name.startswith(_PARTS):
        return _parts(user, part, part.dimension)
    return None


def _adds_bias(user: Any) -> bool:
    """Return True for the sum with a trained vector, one number for each column."""
    operands = [following for following, _ in user.next_functions if following is not None]
    leaf = operands[-1] if user.name() == "AddBackward0" and len(operands) == _PAIR else None
    return leaf is not None and leaf.name() == _LEAF and leaf.variable.dim() == 1


def _parts(user: Any, part: _Selected, dimension: int) -> list[_Selected]:
    """Return the columns in each part of a result that is split along them, or along another dimension."""
    along, count = _signed(user._saved_dim) % (dimension + 1), len(user._input_metadata)
    removed = user.name().startswith("Unbind")
    if along != dimension:
        return [_Selected(user, output, part.columns, dimension - removed) for output in range(count)]
    if removed:
        return [_Selected(user, output, [column], None) for output, column in enumerate(part.columns)]
    found, begin = [], 0
    sizes = _sizes(user, len(part.columns))
    for output, size in enumerate(sizes):
        found.append(_Selected(user, output, part.columns[begin : begin + size], dimension))
        begin += size
    return found


def _sizes(user: Any, columns: int) -> list[int]:
    """Return the numbers of columns of the parts of a split."""
    if hasattr(user, "_saved_split_sizes"):
        return [int(size) for size in user._saved_split_sizes]
    size = int(user._saved_split_size)
    return [min(size, columns - begin) for begin in range(0, columns, size)]


def _signed(value: Any) -> int:
    """Return a saved number, which the tape shows without its sign."""
    number = int(value)
    return number - (1 << 64) if number >= 1 << 63 else number


def _shape(node: Any, output: int) -> tuple[int, ...]:
    metadata = node._input_metadata
    return tuple(int(size) for size in metadata[output].shape) if output < len(metadata) else ()
