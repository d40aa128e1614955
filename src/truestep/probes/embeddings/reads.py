"""The rows of embeddings that a training reads, at sampled steps: one row for all positions, or the rows of other ids.

Seam: calls of modules inside of a model, from the module probe.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from truestep import source
from truestep.events import EmbeddingRead, Site
from truestep.probes.context.local_variables import shares_snapshot
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.embeddings.untrained import UntrainedRows, are_rows
from truestep.probes.forward.losses.label_values import is_transformed
from truestep.seams.refs import Ref

_LEAST = 8
"""Least number of different ids that two embeddings have in common, and of an argument that is not read."""
_LARGEST = 1 << 18
_MOST_READS = 64
_MOST_COLUMNS = 16
_FITS = 0.5
"""Least share of the rows of an embedding that the largest number of its ids reaches."""
_OTHER = 0.1
"""Least difference of the sizes of two embeddings, as a part of the larger one."""


@dataclass(slots=True)
class _Read:
    module: Ref
    rows: int
    ids: Any
    """A copy of the ids, on the CPU."""
    site: Site | None


class EmbeddingReads:
    """Emits `EmbeddingRead`.

    Args:
        scene: the scene.

    Attributes:
        untrained: reads the embeddings of evaluations.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._kind = scene.torch.nn.Embedding
        self.untrained = UntrainedRows(scene)
        self._model: Ref | None = None
        self._reads: list[_Read] = []
        self._given: list[tuple[int, Ref]] = []
        """Places of the integer arguments of the current call, with weak references."""
        self._sizes: set[int] = set()
        """First sizes of all its arguments."""

    def begin(self, module: Any, args: tuple[Any, ...]) -> None:
        """Handle the start of the call of a model."""
        self._reads.clear()
        self._model = Ref(module)
        tensor = self._scene.torch.Tensor
        tensors = [(place, one) for place, one in enumerate(args) if isinstance(one, tensor)]
        self._sizes = {int(one.shape[0]) for _, one in tensors if one.dim()}
        self._given = [(place, Ref(one)) for place, one in tensors if _is_whole(one)]

    def is_one(self, module: Any) -> bool:
        """Return True for an embedding."""
        return isinstance(module, self._kind)

    def called(self, module: Any, args: tuple[Any, ...], site: Site | None) -> None:
        """Handle the call of an embedding inside of the model, or of a model that is one."""
        ids: Any = args[0] if args else None
        readable = isinstance(ids, self._scene.torch.Tensor) and _is_whole(ids) and 0 < ids.numel() <= _LARGEST
        if readable and len(self._reads) < _MOST_READS:
            with self._scene.sampling.timed(ids):
                copy = ids.detach().to("cpu", copy=True)
                if not are_rows(copy, int(module.num_embeddings)):
                    return
                self.untrained.trained(module, copy)
            self._reads.append(_Read(Ref(module), int(module.num_embeddings), copy, site))

    def end(self, model: int, module: Any) -> None:
        """Handle the end of the call of a model, and emit its reads."""
        reads, self._reads = self._reads, []
        if reads and self._model is not None and self._model() is module:
            self._tell(model, module, reads)

    def _tell(self, model: int, module: Any, reads: list[_Read]) -> None:
        with self._scene.sampling.timed(None):
            names = {id(part): name for name, part in module.named_modules() if self.is_one(part)}
            inside = {int(read.ids.shape[0]) for read in reads if read.ids.dim() > 1 and read.ids.shape[0] > 1}
            sizes = self._sizes | inside
            unread = list(self._unread(module, reads)) if len(reads) > 1 else []
            for read in reads:
                twin, argument, beside = self._others(read, reads, unread)
                first = read.ids.reshape(-1)[0]
                equal = bool((read.ids == first).all())
                self._scene.tell(
                    EmbeddingRead,
                    model=model,
                    name=_name(read, names),
                    rows=read.rows,
                    length=int(read.ids.shape[-1]) if read.ids.dim() else 1,
                    row=int(first) if equal else None,
                    positions=_are_positions(read.ids, sizes),
                    twin="" if twin is None else _name(twin, names),
                    unread=argument,
                    beside="" if beside is None else _name(beside, names),
                    site=read.site,
                )
        self._given = []

    def _others(
        self, read: _Read, reads: list[_Read], unread: list[tuple[str, Any]]
    ) -> tuple[_Read | None, str, _Read | None]:
        """Return the other embedding with the same ids, and the ids that were meant.

        These are an argument that ``forward`` does not read, or those of an embedding of equal size beside it.
        """
        twin = self._twin(read, reads)
        if twin is None:
            return None, "", None
        for name, ids in unread:
            if _fits(read, ids) and read.rows == min(other.rows for other in reads if _fits(other, ids)):
                return twin, name, None
        same = [other for other in reads if other.rows == twin.rows]
        if all(_are_equal(other, read) for other in same) and int(read.ids.max()) < twin.rows < read.rows:
            for other in reads:
                if other.rows == read.rows and not _are_equal(other, read) and _fits(read, other.ids.reshape(-1)):
                    return twin, "", other
        return None, "", None

    def _twin(self, read: _Read, reads: list[_Read]) -> _Read | None:
        """Return an embedding of another size that the call read at the same ids, if these are several."""
        for other in reads:
            sizes = other.rows, read.rows
            if abs(sizes[0] - sizes[1]) > _OTHER * max(sizes) and _are_equal(other, read):
                return other if len(read.ids.unique()) >= _LEAST else None
        return None

    def _unread(self, module: Any, reads: list[_Read]) -> Iterator[tuple[str, Any]]:
        """Yield integer arguments, or columns of them, that ``forward`` does not read, with their names."""
        forward = getattr(type(module), "forward", None)
        if not isinstance(forward, FunctionType):
            return
        names, used = forward.__code__.co_varnames[1:], _columns_used(forward.__code__)
        for place, ref in self._given:
            value, name = ref(), names[place] if place < len(names) else ""
            columns = used.get(name, frozenset[int]()) if name else None
            if value is None or columns is None or not has_values(value) or not 0 < value.numel() <= _LARGEST:
                continue
            parts = {} if columns else {name: value.detach().cpu()}
            if columns and value.dim() == 2 and value.shape[1] <= _MOST_COLUMNS:
                unused = set(range(value.shape[1])) - {column % value.shape[1] for column in columns}
                parts = {f"{name}[:, {column}]": value[:, column].detach().cpu() for column in sorted(unused)}
            for shown, part in parts.items():
                alike = [read for read in reads if read.ids.numel() == part.numel()]
                flat = part.reshape(-1)
                if alike and all(bool((read.ids.reshape(-1) != flat).any()) for read in alike):
                    yield shown, flat


@functools.lru_cache(maxsize=64)
def _columns_used(code: CodeType) -> dict[str, frozenset[int] | None]:
    """Return the columns that a function reads of its variables; None for a variable that it reads in other ways."""
    found: dict[str, frozenset[int] | None] = dict.fromkeys(code.co_cellvars)
    tree = source.parsed(code.co_filename)
    definition = next(
        (
            node
            for node in (source.walk(tree) if tree is not None else ())
            if isinstance(node, ast.FunctionDef) and node.name == code.co_name
            and code.co_firstlineno <= node.lineno <= code.co_firstlineno + len(node.decorator_list)
        ),
        None,
    )  # fmt: skip
    if definition is None or shares_snapshot(code):
        return dict.fromkeys(code.co_varnames)
    inside = [node for statement in definition.body for node in source.walk(statement)]
    columns = {id(node.value): _column(node) for node in inside if isinstance(node, ast.Subscript)}
    for node in inside:
        if isinstance(node, ast.Name):
            column, before = columns.get(id(node)), found.get(node.id, frozenset[int]())
            found[node.id] = None if column is None or before is None else before | {column}
    return found


def _column(node: ast.Subscript) -> int | None:
    """Return the column that an expression reads, such as 1 for ``pairs[:, 1]``."""
    match node.slice:
        case ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), ast.Constant(value=int(column))]):
            return column
        case ast.Tuple(elts=[ast.Constant(value=value), ast.Constant(value=int(column))]) if value is ...:
            return column
    return None


def _name(read: _Read, names: dict[int, str]) -> str:
    return names.get(id(read.module()), "")


def _are_equal(one: _Read, other: _Read) -> bool:
    return one.ids.shape == other.ids.shape and bool((one.ids == other.ids).all())


def _fits(read: _Read, ids: Any) -> bool:
    """Return True if numbers can be ids of an embedding, in place of those that it was read at."""
    most = int(ids.max()) + 1
    enough = int(ids.min()) >= 0 and _FITS * read.rows <= most <= read.rows
    return enough and ids.numel() == read.ids.numel() and len(ids.unique()) >= _LEAST


def _are_positions(ids: Any, sizes: set[int]) -> bool:
    """Return True for ids of the positions of a sequence: one row of them, for all samples of the batch."""
    count = int(ids.numel())
    several = any(size > 1 and size != count for size in sizes)
    return several and count not in sizes and (ids.dim() == 1 or (ids.dim() == 2 and ids.shape[0] == 1))


def _is_whole(value: Any) -> bool:
    """Return True for a tensor of integers with values that can be read."""
    whole = not (value.is_floating_point() or value.is_complex() or str(value.dtype) == "torch.bool")
    return whole and has_values(value) and not is_transformed(value)
