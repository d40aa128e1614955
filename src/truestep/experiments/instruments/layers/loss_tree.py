"""The terms of a loss: a sum of scalars on the tape, down to other operations than sums.

Terms have the names of the script's variables, which are found by the operation that made their values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from truestep.experiments.instruments.layers.reach import LEAF, leaves_of, nodes_below

_SUMS = {"AddBackward0": (1.0, 1.0), "SubBackward0": (1.0, -1.0), "RsubBackward0": (-1.0, 1.0)}
"""Signs of the operands."""
_MEANS = ("MeanBackward0", "MeanBackward1")
_TOTALS = ("SumBackward0", "SumBackward1", *_MEANS)
_SCALINGS = ("MulBackward0", "DivBackward0", "NegBackward0")
_DEEPEST, _MOST = 6, 32
Describe = Callable[[dict[int, Any]], dict[str, Any]]


def operation(node: Any) -> str:
    """Return the name of an operation as in `torch.nn.functional`: "mse_loss", "cross_entropy"."""
    name = node.name()
    if name == LEAF:
        return "a tensor"
    inner = node.next_functions[0][0] if node.next_functions else None
    if name.startswith("NllLoss") and inner is not None and inner.name().startswith("LogSoftmax"):
        return "cross_entropy"
    words = re.sub(r"Backward\d*(_\w+)?$", "", name.rpartition("::")[2])
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", words).lower()


class LossTree:
    """Reads the terms of one loss.

    Args:
        names: variables of the script by the operation that made them: name and value.
        modules: names of loss modules by the operation that made their results.
        describe: returns the parameters among the leaf tensors of a tape.
    """

    def __init__(self, names: Mapping[Any, tuple[str, Any]], modules: Mapping[Any, str], describe: Describe) -> None:
        self._names, self._modules, self._describe = names, modules, describe
        self._left = _MOST

    def read(self, root: Any) -> dict[str, Any]:
        """Return a loss with its terms.

        Args:
            root: the tensor that the backward pass starts from.
        """
        node = root.grad_fn
        if node is None:
            found = self._described([], "", "a tensor without a graph", 1.0, root)
            return found | {"reaches": self._describe({id(root): root} if root.requires_grad else {})}
        found = self._term(node, 1.0, 0)
        if found["value"] is None and not found["name"]:
            found["value"] = _number(root)
            found["factor"] = 1.0
        return found | {"shape": list(root.shape), "dtype": str(root.dtype).removeprefix("torch.")}

    def _term(self, node: Any, factor: float | None, depth: int) -> dict[str, Any]:
        node, factor = self._below_scalings(node, factor)
        name, value = self._names.get(node, ("", None))
        below, by = _below(node)
        parts = list(_operands(below)) if depth < _DEEPEST else []
        made_by = self._modules.get(node) or ("sum" if len(parts) > 1 else operation(below))
        found = self._described([node], name, made_by, factor, value)
        terms: list[dict[str, Any]] = []
        for inner, sign in parts if len(parts) > 1 else ():
            if self._left <= 0:
                break
            self._left -= 1
            one = self._term(inner, None if by is None else sign * by, depth + 1)
            unnamed_sum = one["terms"] and not one["name"] and one["factor"] in (1.0, -1.0)
            terms += [_signed(term, one["factor"]) for term in one["terms"]] if unnamed_sum else [one]
        return found | {"terms": terms}

    def _described(self, nodes: list[Any], name: str, made_by: str, factor: float | None, value: Any) -> dict[str, Any]:
        return {
            "name": name,
            "operation": made_by,
            "factor": factor,
            "value": _number(value),
            "reaches": self._describe(leaves_of(nodes_below(nodes))),
            "terms": [],
        }

    def _below_scalings(self, node: Any, factor: float | None) -> tuple[Any, float | None]:
        """Return the operation below multiplications by numbers, and their product; None if one is unknown."""
        below, by = _below(node, lambda one: one in self._names or one in self._modules)
        return below, None if by is None or factor is None else factor * by


def _below(node: Any, stops: Callable[[Any], bool] = lambda node: False) -> tuple[Any, float | None]:
    """Return the operation below multiplications of a scalar by numbers, and their product; None if one is unknown.

    Sums with one operand that has a gradient are passed as well.
    """
    factor: float | None = 1.0
    while (node.name() in _SCALINGS or node.name() in _SUMS) and _shape(node) in ((), (1,)) and not stops(node):
        inner = [
            (index, following) for index, (following, _) in enumerate(node.next_functions) if following is not None
        ]
        if len(inner) != 1:
            break
        by = _SUMS[node.name()][min(inner[0][0], 1)] if node.name() in _SUMS else _scale(node)
        factor = None if by is None or factor is None else factor * by
        node = inner[0][1]
    return node, factor


def _signed(term: dict[str, Any], sign: float) -> dict[str, Any]:
    return term | {"factor": None if term["factor"] is None else term["factor"] * sign}


def _operands(node: Any) -> Iterator[tuple[Any, float]]:
    """Yield the operands with a gradient of a sum of scalars, and their signs; nothing for other operations."""
    name = node.name()
    if name in _SUMS and _shape(node) == ():
        signs = _SUMS[name]
        for index, (following, _) in enumerate(node.next_functions):
            if following is not None:
                yield following, signs[min(index, 1)]
    elif name in _TOTALS and _shape(node) == ():
        stacked = node.next_functions[0][0] if node.next_functions else None
        if stacked is not None and stacked.name() in ("StackBackward0", "CatBackward0"):
            parts = [following for following, _ in stacked.next_functions]
            if parts and all(part is None or _shape(part) in ((), (1,)) for part in parts):
                share = 1.0 / len(parts) if name in _MEANS else 1.0
                yield from ((part, share) for part in parts if part is not None)


def _shape(node: Any) -> tuple[int, ...]:
    metadata = getattr(node, "_input_metadata", ())
    return tuple(metadata[0].shape) if metadata else (-1,)


def _scale(node: Any) -> float | None:
    """Return the number that an operation multiplies by; None if it is unknown."""
    name = node.name()
    if name == "NegBackward0":
        return -1.0
    for saved in ("other", "self"):
        held = getattr(node, f"_raw_saved_{saved}", None)
        value = getattr(held, "data", None) if hasattr(held, "data") else getattr(node, f"_saved_{saved}", None)
        number = _number(value)
        if number:
            return 1 / number if name == "DivBackward0" else number
    return None


def _number(value: Any) -> float | None:
    """Return the value of a tensor with one element, or of a number."""
    import torch

    if isinstance(value, torch.Tensor) and value.numel() == 1 and not value.is_complex() and not value.is_meta:
        return float(value.detach())
    return None
