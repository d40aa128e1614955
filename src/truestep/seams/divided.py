"""Tensors that are divided over ranks (`DTensor`), recognized without an import of torch.distributed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any


def is_divided(tensor: Any) -> bool:
    """Return True if each rank has a part of a tensor."""
    return hasattr(tensor, "full_tensor")


def part(tensor: Any) -> Any:
    """Return the tensor that stores the part on this rank, for reads; any other tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)


def local(tensor: Any) -> Any:
    """Return the part of a tensor on this rank, with its gradient; any other object itself."""
    return tensor.to_local() if is_divided(tensor) else tensor


def divide(tensor: Any, like: Any) -> Any:
    """Return a whole tensor, which all ranks have, divided like another one; of the other shape, each rank keeps all.

    Args:
        tensor: the whole values.
        like: a tensor that is divided over ranks; for any other object, `tensor` itself is returned.
    """
    if not is_divided(like) or is_divided(tensor):
        return tensor
    from torch.distributed.tensor import Replicate, distribute_tensor

    placements = like.placements if tensor.shape == like.shape else [Replicate()] * like.device_mesh.ndim
    return distribute_tensor(tensor, like.device_mesh, placements, src_data_rank=None)


def gathered(state: Any, *, kept: bool, known: dict[int, Any] | None = None) -> Any:
    """Return a state with whole tensors on the CPU in place of those that are divided; all ranks call this together.

    Args:
        state: nested mappings, lists and tuples.
        kept: True on the ranks that need the values; others get None in their place, and hold one at a time.
        known: tensors that were gathered before, by the ids of their parts: tied tensors stay one tensor.
    """
    known = {} if known is None else known
    if is_divided(state):
        if id(state) not in known:
            whole = state.detach().full_tensor()
            known[id(state)] = whole.to("cpu") if kept else None
        return known[id(state)]
    if isinstance(state, Mapping):
        items = {key: gathered(value, kept=kept, known=known) for key, value in state.items()}
        if not isinstance(state, OrderedDict):
            return items
        ordered = OrderedDict(items)
        vars(ordered).update(vars(state))  # the versions of the modules
        return ordered
    if type(state) in (list, tuple):
        return type(state)(gathered(value, kept=kept, known=known) for value in state)
    return state


def full(tensor: Any) -> Any:
    """Return a tensor with the parts of all ranks, which must call this together; any other object itself."""
    return tensor.full_tensor() if is_divided(tensor) else tensor
