"""What FSDP makes of parameters: FSDP2 gathers them for a forward, FSDP1 lays them one behind the other."""

from __future__ import annotations

import sys
from typing import Any


def shards() -> dict[int, Any]:
    """Return the shard that the optimizer holds of every gathered parameter (FSDP2), by the gathered one's identity."""
    module = sys.modules.get("torch.distributed._composable_state")
    mapping = getattr(module, "_module_state_mapping", None)
    found: dict[int, Any] = {}
    for reference in list(mapping.values()) if mapping else ():
        state = reference()
        groups = getattr(state, "_fsdp_param_groups", None) or (getattr(state, "_fsdp_param_group", None),)
        for group in groups:
            for parameter in getattr(group, "fsdp_params", ()):
                gathered = getattr(parameter, "_unsharded_param", None)
                if gathered is not None:
                    found[id(gathered)] = parameter.sharded_param
    return found


def is_freed(tensor: Any) -> bool:
    """Whether a tensor has a shape, but its memory was given back (a gathered parameter between its uses)."""
    try:
        return bool(tensor.numel()) and tensor.untyped_storage().size() == 0
    except (NotImplementedError, RuntimeError):
        return False


def is_flattened(parameter: Any) -> bool:
    """Whether a parameter is what FSDP1 made of several, or one of these."""
    return bool(getattr(parameter, "_is_flat_param", False) or getattr(parameter, "_fsdp_flattened", False))


def is_whole(parameter: Any, grad: Any) -> bool:
    """Whether a gradient is that of a whole parameter, on a rank that holds a part: writes to it change no version."""
    return bool(parameter.shape != grad.shape)
