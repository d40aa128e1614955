"""Tensors that are divided over ranks (`DTensor`), and parameters under FSDP, without an import of torch.distributed.

FSDP2 gathers shards for a forward pass, FSDP1 flattens several parameters into one.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Mapping
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


def shards() -> dict[int, Any]:
    """Return the shard that the optimizer holds (FSDP2), by the identity of the gathered parameter."""
    return {id(gathered): parameter.sharded_param for parameter, gathered in _gathered()}


def gradients_wait() -> bool:
    """Return True if gradients of gathered parameters wait for the pass that reduces them (FSDP2)."""
    return any(
        gathered.grad is not None or parameter.unsharded_accumulated_grad is not None
        for parameter, gathered in _gathered()
    )


def _gathered() -> Iterator[tuple[Any, Any]]:
    """Yield torch's record of each parameter that was gathered, and the gathered one."""
    module = sys.modules.get("torch.distributed._composable_state")
    mapping = getattr(module, "_module_state_mapping", None)
    for reference in list(mapping.values()) if mapping else ():
        state = reference()
        groups = getattr(state, "_fsdp_param_groups", None) or (getattr(state, "_fsdp_param_group", None),)
        for group in groups:
            for parameter in getattr(group, "fsdp_params", ()):
                gathered = getattr(parameter, "_unsharded_param", None)
                if gathered is not None:
                    yield parameter, gathered


def is_freed(tensor: Any) -> bool:
    """Return True if a tensor has a shape, but its memory was released (a gathered parameter between its uses)."""
    try:
        return bool(tensor.numel()) and tensor.untyped_storage().size() == 0
    except (NotImplementedError, RuntimeError):
        return False


def is_flattened(parameter: Any) -> bool:
    """Return True for a flat parameter of FSDP1, and for one of its original parameters."""
    return bool(getattr(parameter, "_is_flat_param", False) or getattr(parameter, "_fsdp_flattened", False))


def is_whole(parameter: Any, grad: Any) -> bool:
    """Return True for the gradient of a whole parameter on a rank with a part: writes do not change its version."""
    return bool(parameter.shape != grad.shape)
