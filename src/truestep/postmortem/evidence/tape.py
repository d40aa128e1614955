"""The autograd graph of a tensor. Saved tensors are never read: that would run the program's hooks."""

from __future__ import annotations

from typing import Any

from truestep.postmortem.evidence.crash import Crash

_MOST_NODES = 50_000
_LEAF = "torch::autograd::AccumulateGrad"


def behind(crash: Crash, node: Any) -> set[Any]:
    """Return the operations that lead to a tensor, given the last of them, without the leaves of parameters."""
    seen: set[Any] = {node} if node is not None else set()
    todo = list(seen)
    while todo and len(seen) < _MOST_NODES:
        crash.check()
        for following, _ in todo.pop().next_functions:
            if following is not None and following not in seen and following.name() != _LEAF:
                seen.add(following)
                todo.append(following)
    return seen


def is_leaf(node: Any) -> bool:
    return bool(node.name() == _LEAF)
