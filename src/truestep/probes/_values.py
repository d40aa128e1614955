"""Which tensors hold numbers that can be read, and where those of a sparse tensor lie."""

from __future__ import annotations

from typing import Any


def has_values(tensor: Any) -> bool:
    """Whether a tensor has numbers in memory, one after the other.

    One on the meta device or of FakeTensorMode has a shape alone, one in a sparse or jagged layout more than numbers.
    """
    return not tensor.is_meta and str(tensor.layout) == "torch.strided" and not hasattr(tensor, "fake_mode")


def stored(tensor: Any) -> Any:
    """Return the numbers of a sparse tensor that are stored, any other tensor itself."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return tensor._values()
    return tensor.values() if layout.startswith("torch.sparse_") else tensor
