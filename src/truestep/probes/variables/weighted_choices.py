"""Weights of the log-probabilities of choices in a loss, by its tape, in the order in which these were computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from truestep.probes.context.values import saved
from truestep.probes.forward.losses.advantages import logarithm
from truestep.probes.forward.losses.followed_targets import kind_of

_TERMS = frozenset({
    "Add", "Neg", "Sub", "Rsub", "Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "Alias",
    "Select", "Slice", "Index", "Unbind", "Stack", "Cat", "Expand", "T", "Transpose", "Permute", "Mean", "Sum", "Div",
    "Minimum", "Maximum", "Min", "Max", "Clamp",
})  # fmt: skip
"""Operations between a loss and its products."""
_JOINED = frozenset({"Stack", "Cat"})
_VIEWS = frozenset({"Neg", "Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "Alias"})
_MOST_NODES = 1 << 15
_LEAST = 8


class Weighted(NamedTuple):
    """Weights of log-probabilities.

    Attributes:
        values: the weights, as the loss has them.
        order: their places in the order in which the log-probabilities were computed; None if these are of one call.
        in_time: True if each log-probability is of another call, and all are computed before the first product.
    """

    values: Any
    order: Any
    in_time: bool


def weighted_choices(torch: Any, root: Any) -> Iterator[Weighted]:
    """Yield the weights in a loss: vectors of one product, or the numbers of a product for each step.

    Args:
        torch: the module.
        root: operation that made the loss.
    """
    single: list[tuple[Any, Any]] = []
    for product in _products(root):
        factor, inner = _factor(product), _inputs(product)[0]
        if factor is None:
            continue
        if factor.numel() == 1:
            single.append((product, factor))
        elif factor.numel() >= _LEAST and logarithm(inner, inner) is not None:
            order = _order(torch, inner, factor.numel())
            yield Weighted(factor.detach().reshape(-1), order, order is not None)
    logs = [(product, factor, logarithm(*_inputs(product) * 2)) for product, factor in single]
    logs = [one for one in logs if one[2] is not None]
    if len(logs) >= _LEAST:
        logs.sort(key=lambda one: int(one[0]._sequence_nr()))
        values = torch.stack([factor.detach().reshape(()) for _, factor, _ in logs])
        made = [int(log._sequence_nr()) for _, _, log in logs]
        apart = len(set(made)) == len(made)
        before = max(made) < min(int(product._sequence_nr()) for product, _, _ in logs)
        if apart and before:
            yield Weighted(values, torch.tensor(made).argsort(), True)


def _products(root: Any) -> list[Any]:
    """Return the last products, seen from a loss, of a tensor with a gradient and one without."""
    found, above = dict[Any, None](), set[Any]()
    seen, queue = {root}, [(root, None)] if root is not None else []
    while queue and len(seen) < _MOST_NODES:
        node, product = queue.pop()
        kind, inner = kind_of(node), _inputs(node)
        if kind == "Mul" and len(inner) == 1:
            found[node] = None
            above.add(product)
            product = node
        elif kind not in _TERMS:
            continue
        new = [one for one in inner if one not in seen]
        seen.update(new)
        queue += [(one, product) for one in new]
    return [one for one in found if one not in above]


def _factor(product: Any) -> Any:
    """Return the factor without a gradient; None if its values cannot be read."""
    other = 1 if product.next_functions[0][0] is not None else 0
    factor = saved(product, ("self", "other")[other])
    if factor is None or not hasattr(factor, "is_cpu") or not factor.is_cpu or not factor.is_floating_point():
        return None
    return factor


def _order(torch: Any, node: Any, count: int) -> Any:
    """Return the places of joined log-probabilities in the order of their computation; None if they are of one call."""
    while kind_of(node) in _VIEWS and (inner := _inputs(node)):
        node = inner[0]
    parts = _inputs(node) if kind_of(node) in _JOINED and getattr(node, "_saved_dim", 0) == 0 else []
    if len(parts) < _LEAST // 2 or count % len(parts):
        return None
    logs = [logarithm(one, one) for one in parts]
    made = [-1 if one is None else int(one._sequence_nr()) for one in logs]
    if len(set(made)) < len(made) or -1 in made:
        return None
    width = count // len(parts)
    return (torch.tensor(made).argsort()[:, None] * width + torch.arange(width)).reshape(-1)


def _inputs(node: Any) -> list[Any]:
    return [following for following, _ in node.next_functions if following is not None]
