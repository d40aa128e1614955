"""Checksums of tensors and of containers of tensors: equal bits give equal numbers, other bits other numbers."""

from __future__ import annotations

import ctypes
import pickle
import random
import sys
import zlib
from collections.abc import Iterable
from typing import Any

from truestep.seams.divided import part

_PLACES = 16
"""Number of single weights that are recorded in addition to the checksum."""
_CHUNK = 2**24
_ODD = 0x9E3779B97F4A7C15 - 2**64
_VIEWS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def of_tensor(tensor: Any) -> int:
    """Return a checksum of the values of a tensor: CRC-32 on the CPU, a weighted sum of the bits on other devices.

    Args:
        tensor: any shape, dtype and device; for a distributed tensor, the part of this process is taken.
    """
    import torch

    tensor = part(tensor).detach()
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        return zlib.crc32(b"%d %d" % (of_tensor(tensor.indices()), of_tensor(tensor.values())))
    if tensor.is_meta or tensor.layout is not torch.strided or torch.nn.parameter.is_lazy(tensor):
        return zlib.crc32(f"{tensor.dtype} {tensor.layout}".encode())
    if tensor.is_quantized:
        tensor = tensor.int_repr()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.resolve_neg().contiguous()
    if tensor.device.type != "cpu":
        return on_device(tensor)
    size = tensor.numel() * tensor.element_size()
    return zlib.crc32((ctypes.c_char * size).from_address(tensor.data_ptr())) if size else 0


def on_device(tensor: Any) -> int:
    """Return a 32-bit checksum that is computed on the tensor's device, so that only one number is copied."""
    import torch

    flat = tensor.reshape(-1)
    if flat.dtype is torch.bool:
        flat = flat.to(torch.int8)
    flat = flat.view(getattr(torch, _VIEWS[flat.element_size()]))
    total = 0
    for start in range(0, flat.numel(), _CHUNK):
        part = flat[start : start + _CHUNK].to(torch.int64)
        weights = torch.arange(start, start + part.numel(), device=flat.device) * 2 + 1
        mixed = (part + weights) * (weights * _ODD)
        total += int(((mixed ^ (mixed >> 29)) * _ODD).sum().item())
    return zlib.crc32(b"%d" % (total % 2**64))


def of(thing: Any) -> int:
    """Return a checksum of numbers, texts, tensors, and lists and dicts of them.

    Args:
        thing: the value; for other types, only the type counts.
    """
    import torch

    if isinstance(thing, torch.Tensor):
        return of_tensor(thing)
    if isinstance(thing, dict):
        return zlib.crc32(" ".join(f"{key}:{of(value)}" for key, value in thing.items()).encode())
    if isinstance(thing, list | tuple):
        return zlib.crc32(" ".join(str(of(value)) for value in thing).encode())
    if isinstance(thing, bool | int | float | str | bytes | complex | None):
        return zlib.crc32(repr(thing).encode())
    if type(thing).__module__ == "numpy":
        return zlib.crc32(pickle.dumps(thing))
    return zlib.crc32(type(thing).__qualname__.encode())


def of_weights(parameters: Iterable[Any]) -> str:
    """Return the checksums of parameters, eight hexadecimal digits for each."""
    return "".join(f"{of_tensor(parameter):08x}" for parameter in parameters)


def some_of(parameters: list[Any]) -> list[float]:
    """Return values of at most 16 single weights, spread over the largest tensors, to measure distances between runs.

    Args:
        parameters: parameters of an optimizer, in their order.
    """
    import torch

    dense = [part(parameter).detach() for parameter in parameters]
    dense = [tensor for tensor in dense if tensor.layout is torch.strided and tensor.numel() and not tensor.is_meta]
    dense = [tensor for tensor in dense if tensor.is_floating_point()]
    dense.sort(key=lambda tensor: -tensor.numel())  # stable: the same tensors in every run
    share = max(1, _PLACES // max(1, len(dense)))
    values = []
    for tensor in dense[:_PLACES]:
        flat, count = tensor.reshape(-1), min(share, tensor.numel())
        places = [(2 * number + 1) * flat.numel() // (2 * count) for number in range(count)]
        values += flat[places].tolist()
    return values


def of_random_states() -> dict[str, int]:
    """Return checksums of the global random states: torch, each accelerator in use, python, numpy."""
    import torch

    states = {"torch": of_tensor(torch.get_rng_state()), "python": zlib.crc32(repr(random.getstate()).encode())}
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        states["numpy"] = zlib.crc32(pickle.dumps(numpy.random.get_state()))
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        states["accelerator"] = zlib.crc32(" ".join(str(of_tensor(s)) for s in torch.cuda.get_rng_state_all()).encode())
    return states
