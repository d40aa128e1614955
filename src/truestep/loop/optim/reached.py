"""Detection of optimizers that a loss reaches and that never update: their parameters are not trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from truestep.loop.optim.updates import Updates


def mark_unused(loss: torch.Tensor, group: tuple[Updates, ...], every: Iterable[Updates]) -> None:
    """Mark unused optimizers with parameters that a loss for other optimizers reaches; once per stepped optimizer."""
    first = group[0]
    if first.looked:
        return
    first.looked = True
    unused = [updates for updates in every if updates not in group and not updates.window.micro_steps_ever]
    if not unused:
        return
    reached = _leaves(loss)
    for updates in unused:
        if not reached.isdisjoint(map(id, updates.parameters())):
            updates.reached_by = first.name


def _leaves(loss: torch.Tensor) -> set[int]:
    """Return the ids of the tensors with gradients from this backward pass."""
    found: set[int] = set()
    seen: set[Any] = set()
    waiting = [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        waiting += [following for following, _ in node.next_functions]
    return found
