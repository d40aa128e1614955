"""The rows of a tensor of samples that are selected: by a slice, by an index, or as a view; and single columns."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from truestep import source

_MOST = 1 << 16
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a tensor.

    Attributes:
        memory: address of the memory of the tensor.
        length: number of its rows.
        chosen: numbers of the rows that are selected.
        parts: True if only a part of each row is, or the rows are another dimension than the first.
    """

    memory: int
    length: int
    chosen: frozenset[int]
    parts: bool = False

    def are_others_than(self, other: Rows) -> bool:
        """Return True if these are as many rows of another tensor of equal length, and none is the same."""
        if self.memory == other.memory or self.length != other.length or len(self.chosen) < _LEAST:
            return False
        return len(self.chosen) == len(other.chosen) and self.chosen.isdisjoint(other.chosen)

    def are_those_of(self, other: Rows) -> bool:
        """Return True if these are the same rows of another tensor of equal length."""
        return self.memory != other.memory and self.length == other.length and self.chosen == other.chosen


def selected(whole: Any, index: Any, torch: Any) -> Rows | None:
    """Return the rows that an index or a slice selects of a tensor; None for other selections."""
    if whole.dim() == 0 or not _LEAST <= whole.shape[0] <= _MOST:
        return None
    if isinstance(index, torch.Tensor):
        if index.dim() != 1 or index.dtype not in (torch.bool, torch.int64):
            return None
        index = index.cpu()
    elif type(index) is not slice:
        return None
    return _rows(whole, torch.arange(whole.shape[0])[index].tolist())


def narrowed(numbers: Any, index: Any, torch: Any) -> Any:
    """Return the rows that an index or a slice selects of some; None for other selections."""
    first = index[0] if type(index) is tuple and index else index
    if numbers is None or first is Ellipsis or (type(first) is slice and first == slice(None)):
        return numbers
    if type(first) is list or type(first).__module__ == "numpy":
        try:
            first = torch.as_tensor(first)
        except Exception:
            return None
    if isinstance(first, torch.Tensor):
        if first.dim() != 1 or first.dtype not in (torch.bool, torch.int64):
            return None
        first = first.to(numbers.device)
    elif type(first) is not slice:
        return None
    try:
        return numbers[first]
    except Exception:
        return None


def viewed(part: Any) -> Rows | None:
    """Return the rows that a tensor is a view of; None for other tensors."""
    base = part._base
    if base is None or part.dim() == 0:
        return None
    if base.dim() != part.dim() or base.stride() != part.stride() or base.shape[1:] != part.shape[1:]:
        return _along(part, base)
    step = part.stride()[0]
    if not step or not _LEAST <= base.shape[0] <= _MOST:
        return None
    start = (part.storage_offset() - base.storage_offset()) // step
    return _rows(base, range(start, start + len(part)))


def _along(part: Any, base: Any) -> Rows | None:
    """Return the rows of a view of some columns, of a transposed tensor or in another shape; None if they are unclear.

    Its first dimension is to be one of the tensor, and the others are to stay within a row.
    """
    step, *steps = part.stride()
    dims = [dim for dim, one in enumerate(base.stride()) if one == step and _LEAST <= base.shape[dim] <= _MOST]
    if len(dims) != 1 or not step or not base.is_contiguous():
        return None
    length = int(base.shape[dims[0]])
    start = (part.storage_offset() - base.storage_offset()) // step % length
    for one, size in zip(steps, part.shape[1:], strict=True):
        if size > 1 and one % (step * length) and one * (size - 1) >= step:
            return None
    if start + len(part) > length:
        return None
    return _rows(base, range(start, start + len(part)), length)


def _rows(whole: Any, chosen: Any, length: int | None = None) -> Rows:
    parts = length is not None
    return Rows(whole.untyped_storage().data_ptr(), length or int(whole.shape[0]), frozenset(chosen), parts)


def is_column(node: ast.expr) -> bool:
    """Return True for one column of all rows.

    >>> [is_column(ast.parse(code, mode="eval").body) for code in ("p[:, 1]", "p[:, -1]", "p[1]")]
    [True, True, False]
    """
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(None, None, None), ast.Constant(int()) | ast.UnaryOp()])):
            return True
    return False


def is_probability(node: ast.expr, path: str) -> bool:
    """Return True if the statement of an expression calls it a probability: columns over samples can be weights."""
    tree = source.parsed(path)
    around: ast.AST | None = node
    parents = {} if tree is None else source.parents(tree)
    while around is not None and not isinstance(around, ast.stmt):
        around = parents.get(around)
    match around:
        case ast.Assign(targets=[kept, *_]) | ast.AugAssign(target=kept) | ast.AnnAssign(target=kept):
            return "prob" in ast.unparse(kept).lower()
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=kept))):
            return "prob" in ast.unparse(kept).lower()
    return False


def is_outer(node: ast.expr) -> bool:
    """Return True if both sides of an operation get a dimension there: ``a[:, None] - b[None, :]``."""
    match node:
        case ast.BinOp(left=left, right=right) | ast.Compare(left=left, comparators=[right]):
            return _widens(left) and _widens(right)
    return False


def _widens(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(slice=index):
            parts = index.elts if isinstance(index, ast.Tuple) else [index]
            return any(isinstance(one, ast.Constant) and one.value is None for one in parts)
        case ast.Call(func=ast.Attribute(attr="unsqueeze")):
            return True
    return False
