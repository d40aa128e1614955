"""Parameters under FSDP: FSDP2 gathers shards for a forward pass, FSDP1 flattens several parameters into one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any


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
