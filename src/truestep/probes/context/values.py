"""Tensors with values that can be read, the stored values of sparse tensors, and those that operations have saved."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any

from truestep.seams.divided import part

Node = tuple[int, str]
"""Number and name of an operation."""
_UNKNOWN = object()


def has_values(tensor: Any) -> bool:
    """Return True if a tensor has strided values in memory; for a DTensor, the part on this rank.

    Tensors on the meta device or of FakeTensorMode have only a shape; those in sparse or jagged layouts have indices
    too; classes with a ``__torch_dispatch__`` (they wrap or pack other tensors) store values in their own format.
    """
    tensor = part(tensor)
    if not isinstance(type(tensor).__torch_dispatch__, BuiltinFunctionType):
        return False
    return not tensor.is_meta and str(tensor.layout) == "torch.strided"


def stored(tensor: Any) -> Any:
    """Return the stored values of a sparse tensor; any other tensor itself."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return tensor._values()
    return tensor.values() if layout.startswith("torch.sparse_") else tensor


def plain_number(torch: Any, value: object) -> float | None:
    """Return the value of a figure, the last one of a list; None for anything else."""
    if type(value) is list and value:
        value = value[-1]
    kind = type(value)
    if kind is torch.Tensor and value.numel() == 1 and value.is_cpu:  # type: ignore[attr-defined]
        return float(value.detach())  # type: ignore[attr-defined]
    if kind in (float, int) or (kind.__module__ == "numpy" and kind.__name__.startswith("float")):
        return float(value)  # type: ignore[arg-type]
    return None


def saved(node: Any, part: str) -> Any:
    """Return a value that an operation has saved; None if a hook of the program would have to restore it."""
    raw = getattr(node, f"_raw_saved_{part}", None)
    if raw is None:
        return None
    several = raw if isinstance(raw, tuple | list) else (raw,)
    if any(one is not None and getattr(one, "unpack_hook", _UNKNOWN) is not None for one in several):
        return None
    try:
        return getattr(node, f"_saved_{part}", None)
    except RuntimeError:  # freed, or changed in place since
        return None


def key_of(node: Any) -> Node:
    """Return the number of an operation in its graph, without a reference to it."""
    return int(node._sequence_nr()), str(node.name())
