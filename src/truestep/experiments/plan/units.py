"""Sizes of memory and shapes of inputs, as they are written on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from truestep.errors import UsageError

TYPES = ("float32", "bfloat16", "float16", "float64", "int64", "int32", "uint8", "bool")
COMMON = (16, 24, 40, 80, 141)
"""Memory of common GPUs in GB: T4, RTX 4090 and A10, A100, A100 and H100, H200."""


@dataclass(frozen=True, slots=True)
class Input:
    """Shape and type of one input of a model.

    Attributes:
        shape: sizes of its dimensions, the batch first.
        dtype: name of its type in torch.
    """

    shape: tuple[int, ...]
    dtype: str


def read_memory(text: str) -> int:
    """Return the bytes of memory that a training can use, for the size of a device such as "80GB".

    A device of 80 GB has 80 GiB, which are 85.9e9 bytes. It counts as 80e9: the difference of 7 % is left to the
    context of the driver and to fragmentation.

    Raises:
        UsageError: the text is not a positive size.

    >>> read_memory("80GB"), read_memory("0.5 gb"), read_memory("24")
    (80000000000, 500000000, 24000000000)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(?:GB|GiB|G)?", text.strip(), re.IGNORECASE)
    if found is None or not float(found[1]):
        raise UsageError(
            f"--memory must be the memory of one device in GB, got {text!r}",
            remedy="write --memory 80GB",
        )
    return round(float(found[1]) * 1e9)


def read_input(text: str) -> Input:
    """Return the shape and type of an input such as "8x1024:int64"; the type is float32 by default.

    Raises:
        UsageError: the text is malformed, or the type unknown.

    >>> read_input("32x3x224x224")
    Input(shape=(32, 3, 224, 224), dtype='float32')
    """
    shape, _, dtype = text.partition(":")
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", shape):
        raise UsageError(
            f"--input must be sizes joined by x, the batch first, got {text!r}",
            expected="expected such as 32x3x224x224, or 8x1024:int64 for tokens",
            remedy="give one --input for each argument of the model's forward",
        )
    if dtype and dtype not in TYPES:
        raise UsageError(
            f"--input has an unknown type, got {dtype!r}",
            expected=f"expected one of {', '.join(TYPES)}",
            remedy=f"write --input {shape}:int64 for tokens, or leave the type out for float32",
        )
    return Input(tuple(int(size) for size in shape.split("x")), dtype or "float32")


def common_memory() -> dict[str, int]:
    """Return the usable bytes of common devices by name, the smallest first."""
    return {f"{size} GB": read_memory(str(size)) for size in COMMON}
