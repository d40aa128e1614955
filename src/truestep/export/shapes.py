"""The dimensions that are free in an exported graph.

The batch is always free: a graph with a fixed batch is an error, unless it was asked for. Another dimension is free if
it differs between the batches that were given, as the length of padded texts does. The second dimension of integers,
which are tokens, is free if the model allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from truestep.errors import BadInputs
from truestep.export.calls import Call

Dims = dict[str, dict[int, Any]]
"""Free dimensions of each input: values of `torch.export.Dim` by dimension."""

_DIM = torch.export.Dim


def free_dimensions(
    calls: Sequence[Call], dynamic: Mapping[str, Sequence[int]] | None = None, *, fixed_batch: bool = False
) -> Dims:
    """Return the free dimensions of each input.

    Args:
        calls: several calls of the model.
        dynamic: free dimensions by input, besides the batch; None finds them.
        fixed_batch: True to fix the size of the batch.

    Raises:
        BadInputs: `dynamic` has an unknown input or dimension.

    Example:
        >>> calls = [Call((torch.ones(4, length, dtype=torch.int64),), {}, ("tokens",)) for length in (5, 7)]
        >>> [list(free) for free in free_dimensions(calls).values()]
        [[0, 1]]
    """
    _check(calls[0], dynamic)
    dims: Dims = {}
    for place, name in enumerate(calls[0].names):
        tensors = [call.tensors[place] for call in calls]
        batched = not fixed_batch and all(
            tensor.dim() and len(tensor) == call.size for call, tensor in zip(calls, tensors, strict=True)
        )
        dims[name] = {0: _DIM.DYNAMIC} if batched else {}
        if dynamic is not None:
            dims[name] |= dict.fromkeys(dynamic.get(name, ()), _DIM.DYNAMIC)
            continue
        for at in range(1, tensors[0].dim()):
            if len({tensor.shape[at] for tensor in tensors}) > 1:
                dims[name][at] = _DIM.DYNAMIC
            elif at == 1 and tensors[0].dtype in (torch.int64, torch.int32) and tensors[0].shape[1] > 1:
                dims[name][at] = _DIM.AUTO
    return dims


def example(calls: Sequence[Call], dims: Dims) -> Call:
    """Return the call to trace: one without a free dimension of size 0 or 1, which torch would fix.

    Args:
        calls: calls of the model.
        dims: free dimensions of each input.
    """

    def least(call: Call) -> tuple[int, int]:
        sizes = (call.tensors[at].shape[dim] for at, dim in _places(call, dims) if dim)
        return min(sizes, default=0), call.size

    call = max(calls, key=least)
    return call.rows(max(2, call.size)) if any(0 in free for free in dims.values()) else call


def _places(call: Call, dims: Dims) -> list[tuple[int, int]]:
    return [(at, dim) for at, name in enumerate(call.names) for dim in dims[name]]


def _check(call: Call, dynamic: Mapping[str, Sequence[int]] | None) -> None:
    for name, free in (dynamic or {}).items():
        if name not in call.names:
            raise BadInputs(
                f"dynamic={name!r} is not an input of the model",
                expected=f"expected one of {', '.join(call.names)}",
                remedy="pass the name of an argument of forward",
            )
        count = call.tensors[call.names.index(name)].dim()
        odd = [dim for dim in free if not 0 <= dim < count]
        if odd:
            raise BadInputs(
                f"dynamic has dimension {odd[0]} of {name!r}, which has {count}",
                expected=f"expected dimensions from 0 to {count - 1}",
                remedy="count dimensions from 0, the batch",
            )
