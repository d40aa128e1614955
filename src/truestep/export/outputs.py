"""Outputs of a model as a list of tensors, and the differences between two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch


def leaves(output: Any) -> list[torch.Tensor]:
    """Return the tensors of an output, in order.

    Example:
        >>> leaves({"a": torch.ones(1), "b": [torch.zeros(2), None]})
        [tensor([1.]), tensor([0., 0.])]
    """
    if isinstance(output, torch.Tensor):
        return [output]
    if isinstance(output, Mapping):
        return [leaf for part in output.values() for leaf in leaves(part)]
    if isinstance(output, tuple | list):
        return [leaf for part in output for leaf in leaves(part)]
    return []


def compared(expected: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> dict[str, Any]:
    """Return the largest difference of two lists of outputs.

    Args:
        expected: of the model.
        outputs: of the export.

    Returns:
        "largest", the largest absolute difference; "relative", that divided by the largest finite absolute value of
        the same output; "fault", a difference of number, shape or type of the tensors, or "".

    Example:
        >>> compared([torch.tensor([1.0, -4.0])], [torch.tensor([1.5, -4.0])])
        {'fault': '', 'largest': 0.5, 'relative': 0.125}
        >>> compared([torch.ones(1, 3)], [torch.ones(3)])["fault"]
        'output 0 has shape [3], expected [1, 3]'
    """
    fault = ""
    largest = relative = 0.0
    if len(expected) != len(outputs):
        fault = f"{len(outputs)} outputs, expected {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, outputs, strict=False)):
        if one.shape != other.shape:
            fault = fault or f"output {number} has shape {list(other.shape)}, expected {list(one.shape)}"
        elif one.dtype != other.dtype:
            fault = fault or f"output {number} is {_name(other)}, expected {_name(one)}"
        elif one.numel():
            apart, share = _difference(one, other)
            largest, relative = max(largest, apart), max(relative, share)
    if fault:
        largest = relative = math.inf
    return {"fault": fault, "largest": largest, "relative": relative}


def _difference(one: torch.Tensor, other: torch.Tensor) -> tuple[float, float]:
    kind = torch.complex128 if one.is_complex() else torch.float64
    a, b = one.detach().to(kind), other.detach().to(kind)
    finite = a.isfinite()
    if not torch.equal(torch.nan_to_num(a[~finite]), torch.nan_to_num(b[~finite])) or not bool(
        b[finite].isfinite().all()
    ):
        return math.inf, math.inf
    if not bool(finite.any()):
        return 0.0, 0.0
    apart = float((a[finite] - b[finite]).abs().max())
    size = float(a[finite].abs().max())
    return apart, apart / size if size else (math.inf if apart else 0.0)


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
