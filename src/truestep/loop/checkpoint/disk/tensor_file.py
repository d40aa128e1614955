"""Named tensors in the safetensors format: a length, a JSON header, and the bytes of the tensors.

The format (https://huggingface.co/docs/safetensors) is written here and read by the library. The library's writer has
no checksum, so that the file must be read again: half as fast (400 MB: 1.4 s with the checksum, against 0.7 s here).
Tied weights are written once; the metadata lists their other names, as in `safetensors.torch.save_model`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch

from truestep.errors import BadCheckpoint

_READ_TO = {"cpu", "cuda", "mps", "xpu"}
"""Device types that the library reads to directly; for others, tensors are moved from the CPU."""
_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
    torch.uint16: "U16", torch.uint32: "U32", torch.uint64: "U64",
    torch.float8_e4m3fn: "F8_E4M3", torch.float8_e5m2: "F8_E5M2",
}  # fmt: skip
_RESERVED = {"__metadata__", "format"}


class Sink(Protocol):
    """An open binary file."""

    def write(self, data: bytes | memoryview, /) -> int:
        """Write the bytes; return their number."""


def fits(name: str, tensor: object) -> bool:
    """Return True if the format can hold this tensor under this name: dense, with a dtype that every reader knows.

    Example:
        >>> fits("weight", torch.zeros(2)), fits("phase", torch.zeros(2, dtype=torch.complex64))
        (True, False)
    """
    if not isinstance(tensor, torch.Tensor) or type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    plain = tensor.layout is torch.strided and tensor.dtype in _NAMES and not tensor.is_meta
    return plain and name not in _RESERVED


def write_tensors(sink: Sink, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write named tensors; a tensor with several names is written once.

    Args:
        sink: an open binary file.
        tensors: dense CPU tensors of any shape for which `fits` is true.
    """
    kept: dict[int, str] = {}
    metadata = {"format": "pt"}
    for name, tensor in tensors.items():
        if tensor.numel() and id(tensor) in kept:
            metadata[name] = kept[id(tensor)]
        else:
            kept.setdefault(id(tensor), name)
    own = [(name, tensor) for name, tensor in tensors.items() if name not in metadata]
    own.sort(key=lambda item: (-item[1].element_size(), item[0]))  # largest elements first: each tensor is aligned
    header: dict[str, object] = {"__metadata__": metadata}
    end = 0
    for name, tensor in own:
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    sink.write(len(text).to_bytes(8, "little") + text)
    for _, tensor in own:
        if tensor.numel():
            sink.write(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)


def read_rows(path: Path, name: str, begin: int, end: int) -> torch.Tensor:
    """Return rows of one tensor in a safetensors file, on the CPU; the others are not read.

    Args:
        path: the file.
        name: of the tensor.
        begin: the first row.
        end: the row after the last one.

    Raises:
        BadCheckpoint: the file has no such tensor or rows, or cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            rows: torch.Tensor = file.get_slice(name)[begin:end]
    except (SafetensorError, OSError) as error:
        raise BadCheckpoint(f"cannot read {path}: {error}", remedy="use another checkpoint") from error
    if len(rows) != end - begin:
        raise BadCheckpoint(
            f"{path} has too few rows of {name}",
            expected=f"expected rows {begin} to {end}, got {len(rows)}",
            remedy="use another checkpoint",
        )
    return rows


def read_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, torch.Tensor]:
    """Return the tensors in a safetensors file, by name; tied weights are one tensor under several names.

    Args:
        path: the file, written by this package or any other.
        device: device for the tensors.

    Raises:
        BadCheckpoint: the file is missing, incomplete or in another format.
    """
    from safetensors import SafetensorError, safe_open  # only reading needs the library

    direct = torch.device(device).type in _READ_TO
    try:
        with safe_open(path, framework="pt", device=str(device) if direct else "cpu") as file:
            tensors = {name: file.get_tensor(name).to(device) for name in file.keys()}  # noqa: SIM118
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise BadCheckpoint(
            f"cannot read {path}: {error}", remedy="use another checkpoint, or download the file again"
        ) from error
    for name, kept in metadata.items():
        if name not in tensors and name not in _RESERVED and kept in tensors:
            tensors[name] = tensors[kept]
    return tensors
