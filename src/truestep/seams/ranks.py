"""Several ranks: the process group, wrappers of DistributedDataParallel, operations over ranks."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch

OPERATIONS = {
    "allreduce": "reduce",
    "allreduce_coalesced": "reduce",
    "reduce": "reduce",
    "allgather": "gather",
    "_allgather_base": "gather",
    "gather": "gather",
    "broadcast": "broadcast",
}
"""Methods of a process group that Python code calls, to the kind of operation. The reducer of
DistributedDataParallel and FSDP1 in C++ do not call them."""


def group() -> tuple[int, int] | None:
    """Return rank and number of ranks of the default process group; None for a single process."""
    module = sys.modules.get("torch.distributed")
    if module is None or not module.is_available() or not module.is_initialized():
        return None
    size = int(module.get_world_size())
    return (int(module.get_rank()), size) if size > 1 else None


def watch_wrapping(stack: ExitStack, wrapped: Callable[[Any], object]) -> None:
    """Call a function with each new DistributedDataParallel module, until the stack unwinds."""
    from torch.nn.parallel import DistributedDataParallel

    @functools.wraps(DistributedDataParallel.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        wrapped(self)

    original = patch(stack, DistributedDataParallel, "__init__", __init__)


def watch_operations(stack: ExitStack, called: Callable[[str, Any], object]) -> None:
    """Call a function with the name and the first argument of each operation over ranks, before it."""
    try:
        from torch._C._distributed_c10d import ProcessGroup
    except ImportError:  # a build without torch.distributed
        return

    def watched(name: str) -> Any:
        original = getattr(ProcessGroup, name)

        @functools.wraps(original)
        def operation(self: Any, *args: Any, **kwargs: Any) -> Any:
            called(name, args[0] if args else None)
            return original(self, *args, **kwargs)

        return operation

    for name in OPERATIONS:
        if hasattr(ProcessGroup, name):
            patch(stack, ProcessGroup, name, watched(name))


def add_gradients(leaves: Sequence[Any], gradients: Sequence[Any]) -> None:
    """Add gradients to leaf tensors by a separate backward pass, which runs their hooks and no probe observes."""
    engine: Any = sys.modules["torch"].autograd.Variable._execution_engine
    engine.run_backward(tuple(leaves), tuple(gradients), False, False, (), allow_unreachable=True, accumulate_grad=True)


def prepared(model: Any) -> int:
    """Return the number of forward passes that prepared an average of gradients; exact up to ten."""
    return int(model.logger._get_ddp_logging_data().ints_map.get("iteration", 0))


def is_hooked(model: Any) -> bool:
    """Return True if a function of the program takes the place of the average of gradients."""
    return bool(getattr(model, "_comm_hooks", ()))
