"""Calls of a model from a loader or a file, and calls of edge shapes made from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn

from truestep.errors import BadInputs
from truestep.export.calls import Call, Chosen, call_from
from truestep.export.shapes import Dims

FILES = (".pt", ".pth", ".safetensors", ".npz", ".npy")


def calls_from(model: nn.Module, batches: Iterable[Any], chosen: Chosen | None, count: int) -> list[Call]:
    """Return the calls for the first batches, on the CPU.

    Args:
        model: any module.
        batches: a loader, or any other iterable of batches.
        chosen: returns the inputs of a batch; None for the convention of `call_from`.
        count: most batches to read.

    Raises:
        BadInputs: no batch was read, or it has no inputs of the model.
    """
    calls = [call_from(model, batch, chosen).copied() for batch in islice(iter(batches), count)]
    if not calls:
        raise BadInputs(
            "no batch was read: the loader is empty",
            expected="expected at least one batch of real inputs to trace and to compare",
            remedy="pass the loader of the validation set",
        )
    names = {call.names for call in calls}
    if len(names) > 1:
        raise BadInputs(
            "the batches have different inputs",
            expected=f"expected the same names in each, got {' and '.join(', '.join(each) for each in sorted(names))}",
            remedy="pass batches of one kind",
        )
    return calls


def edge_calls(calls: Sequence[Call], dims: Dims) -> list[tuple[str, Call]]:
    """Return calls of the kind "edge", with 1 sample, 2, an odd number and the largest number, and of the kind "short".

    Short calls have 1, 2 or 3 in the free dimensions besides the batch.

    Args:
        calls: calls with real inputs.
        dims: free dimensions of each input.
    """
    largest = max(calls, key=lambda call: call.size)
    edges: list[tuple[str, Call]] = []
    if any(0 in free for free in dims.values()):
        size = max(largest.size, 4)
        odd = size - 1 if size % 2 == 0 else size - 2
        edges += [("edge", largest.rows(count)) for count in dict.fromkeys((1, 2, odd, size))]
    lengths = {
        largest.tensors[at].shape[dim]
        for at, name in enumerate(largest.names)
        for dim in dims[name]
        if dim and dim < largest.tensors[at].dim()
    }
    few = largest.rows(min(2, largest.size)) if edges else largest
    for length in sorted({1, 2, 3} - lengths) if lengths else ():
        edges.append(("short", _cut(few, dims, length)))
    return edges


def _cut(call: Call, dims: Dims, length: int) -> Call:
    """Return a call with all free dimensions but the batch cut to a length; lengths of sequences are cut, too."""

    def part(name: str, tensor: torch.Tensor) -> torch.Tensor:
        for dim in dims[name]:
            if dim:
                tensor = tensor.narrow(dim, 0, min(length, tensor.shape[dim]))
        if tensor.dim() == 1 and not tensor.is_floating_point() and tensor.dtype != torch.bool:
            tensor = tensor.clamp(max=length)  # numbers of tokens of padded sequences
        return tensor.contiguous()

    return call.mapped(part)


def batches_in(path: Path) -> Iterator[Any]:
    """Yield the batches in a file: a tensor, a tuple or a mapping of tensors; a list in a file of torch has several.

    Args:
        path: a file of torch.save, safetensors or numpy.

    Raises:
        BadInputs: the file cannot be read, or has other contents.
    """
    if path.suffix not in FILES:
        raise BadInputs(
            f"{path} is not a file of tensors",
            expected=f"expected a name that ends with {', '.join(FILES)}",
            remedy="write it with torch.save(batch, path)",
        )
    try:
        held = _read(path)
    except Exception as error:  # readers raise many kinds of errors for a damaged file
        raise BadInputs(
            f"{path} cannot be read",
            expected=f"expected tensors, got {type(error).__name__}: {str(error).splitlines()[0][:120]}",
            remedy="write it with torch.save(batch, path)",
        ) from error
    yield from held if isinstance(held, list) else [held]


def _read(path: Path) -> Any:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    if path.suffix in (".npz", ".npy"):
        import numpy

        held = numpy.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return torch.from_numpy(held)
        return {name: torch.from_numpy(held[name]) for name in held.files}
    return torch.load(path, map_location="cpu", weights_only=True)
