"""Wrappers around models: how to look through them, and the parts that they add to names."""

from __future__ import annotations

from typing import Any

NAMES = frozenset({"module", "_orig_mod", "_forward_module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
"""Parts that DDP, torch.compile, Lightning Fabric, FSDP and checkpointing add to names."""
_ONLY_CHILD = ("_orig_mod", "module", "_forward_module")


def is_compiled(module: Any) -> bool:
    """Return True if a module was returned by ``torch.compile(module)``."""
    return hasattr(module, "_orig_mod") and hasattr(module, "dynamo_ctx")


def uncompiled(module: Any) -> Any:
    """Return the module inside ``torch.compile``, with names without a prefix; any other module itself."""
    return getattr(module, "_orig_mod", module)


def wrapped_model(model: Any) -> Any:
    """Return the module inside torch.compile and DDP, in any order; its names have no prefix."""
    from torch.nn import Module

    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ == "DistributedDataParallel":
            inner = model.module
        if not isinstance(inner, Module):
            return model
        model = inner


def unwrapped(module: Any) -> Any:
    """Return the module inside the wrappers of torch.compile, DDP, DataParallel and Lightning Fabric.

    A module with one child of such a name counts as a wrapper. Attributes are read without ``__getattr__``.
    """
    for name in _ONLY_CHILD:
        children = module.__dict__.get("_modules")
        inner = children.get(name) if isinstance(children, dict) else None
        if inner is not None and (len(children) == 1 or name == "_forward_module"):
            module = inner
    return module


def bare(name: str) -> str:
    """Return a name without the parts that wrappers add.

    >>> bare("module._orig_mod.head.weight")
    'head.weight'
    """
    return ".".join(part for part in name.split(".") if part not in NAMES)


def uncompiled_name(name: str) -> str:
    """Return a name without the part that ``torch.compile`` adds."""
    return name.replace("_orig_mod.", "")
