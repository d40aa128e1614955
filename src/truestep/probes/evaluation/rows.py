"""The rows of a tensor of samples that are selected: by a slice, by an index, or as a view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

_MOST = 1 << 16
_LEAST = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a tensor.

    Attributes:
        memory: address of the memory of the tensor.
        length: number of its rows.
        chosen: numbers of the rows that are selected.
    """

    memory: int
    length: int
    chosen: frozenset[int]

    def are_others_than(self, other: Rows) -> bool:
        """Return True if these are as many rows of another tensor of equal length, and none is the same."""
        if self.memory == other.memory or self.length != other.length or len(self.chosen) < _LEAST:
            return False
        return len(self.chosen) == len(other.chosen) and self.chosen.isdisjoint(other.chosen)


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
    if base is None or part.dim() == 0 or base.dim() != part.dim() or base.stride() != part.stride():
        return None
    step = part.stride()[0]
    if not step or not _LEAST <= base.shape[0] <= _MOST or base.shape[1:] != part.shape[1:]:
        return None
    start = (part.storage_offset() - base.storage_offset()) // step
    return _rows(base, range(start, start + len(part)))


def _rows(whole: Any, chosen: Any) -> Rows:
    return Rows(whole.untyped_storage().data_ptr(), int(whole.shape[0]), frozenset(chosen))
