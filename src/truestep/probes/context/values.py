"""Which tensors hold numbers that can be read, and where those of a sparse tensor lie."""

from __future__ import annotations

from types import BuiltinFunctionType
from typing import Any


def has_values(tensor: Any) -> bool:
    """Whether a tensor has numbers in memory, one after the other; of a DTensor the part on this rank.

    One on the meta device or of FakeTensorMode has a shape alone, one in a sparse or jagged layout more than numbers,
    and one of a class that runs operations by itself (it wraps others, or packs them) holds them in its own way.
    """
    tensor = getattr(tensor, "_local_tensor", tensor)
    if not isinstance(type(tensor).__torch_dispatch__, BuiltinFunctionType):
        return False
    return not tensor.is_meta and str(tensor.layout) == "torch.strided"


def stored(tensor: Any) -> Any:
    """Return the numbers of a sparse tensor that are stored, any other tensor itself."""
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        return tensor._values()
    return tensor.values() if layout.startswith("torch.sparse_") else tensor
