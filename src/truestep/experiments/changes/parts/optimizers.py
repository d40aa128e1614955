"""The optimizers of a script, and the parameters that a backward pass reaches."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack
from typing import Any

from truestep.seams.patch import patch

_MOST_NODES = 50_000


def built(stack: ExitStack) -> MutableMapping[Any, None]:
    """Return a mapping of all live optimizers that are created from now on, in the order of creation."""
    from torch.optim import Optimizer

    found: MutableMapping[Any, None] = weakref.WeakKeyDictionary()

    def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
        init(optimizer, *args, **kwargs)
        found[optimizer] = None

    init = patch(stack, Optimizer, "__init__", __init__)
    return found


def parameters_of(optimizer: Any) -> Iterator[Any]:
    """Yield the parameters of an optimizer, in its order."""
    for group in optimizer.param_groups:
        yield from group["params"]


def depths_of(outputs: Any) -> dict[Any, int]:
    """Return the leaves that a backward pass will reach, each with its number of operations from the root."""
    roots = [output for output in outputs if output.grad_fn is not None]
    queue = deque((output.grad_fn, 0) for output in roots)
    seen = {node for node, _ in queue}
    found: dict[Any, int] = {}
    while queue and len(seen) < _MOST_NODES:
        node, depth = queue.popleft()
        if node.name() == "torch::autograd::AccumulateGrad":
            found.setdefault(node.variable, depth)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                queue.append((following, depth + 1))
    return found
