"""The floating-point format of a training: fp32, bf16 or fp16, with the scalers of fp16.

Parameters stay fp32; bf16 and fp16 are automatic mixed precision (`torch.autocast`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Self

import torch

from truestep.errors import UnknownPrecision

Format = Literal["fp32", "bf16", "fp16"]

_NAMES: dict[str, Format] = {
    "fp32": "fp32",
    "32": "fp32",
    "32-true": "fp32",
    "bf16": "bf16",
    "bf16-mixed": "bf16",
    "fp16": "fp16",
    "fp16-mixed": "fp16",
    "16-mixed": "fp16",
}
_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
_FP32: AbstractContextManager[None] = nullcontext()
_TF32_SINCE = (8, 0)
"""The first compute capability with tf32 (Ampere)."""


class Precision:
    """The floating-point format of a training.

    With fp32 on a GPU that has it, matrix products use tf32 (10 bits of mantissa) until `close()`, which restores
    the previous setting; it is also a context manager that closes.

    Args:
        name: "auto", "fp32" ("32", "32-true"), "bf16" ("bf16-mixed") or "fp16" ("16-mixed", "fp16-mixed"). "auto" is
            bf16 on a GPU that computes in it, fp16 on an older one, and fp32 on cpu and mps.
        device: where the model computes.
        tf32: False to keep fp32 products at their 23 bits.

    Attributes:
        name: "fp32", "bf16" or "fp16".
        reason: why "auto" chose it; empty otherwise.

    Raises:
        UnknownPrecision: no format of that name.

    Source: Micikevicius et al., Mixed Precision Training (arXiv:1710.03740), and torch's notes on `torch.amp`.

    >>> precision = Precision("bf16-mixed", torch.device("cpu"))
    >>> with precision.autocast():
    ...     (torch.ones(2, 2) @ torch.ones(2, 2)).dtype
    torch.bfloat16
    """

    def __init__(self, name: str = "auto", device: torch.device | str = "cpu", *, tf32: bool = True) -> None:
        self.device = torch.device(device)
        self.name, self.reason = _chosen(name, self.device)
        self._restore: Callable[[], None] | None = None
        if tf32 and self.name == "fp32" and _has_tf32(self.device):
            self._restore = _use_tf32()

    def autocast(self) -> AbstractContextManager[object]:
        """Return a context in which the forward pass and the loss are computed; for the backward pass, leave it."""
        if self.name == "fp32":
            return _FP32
        return torch.autocast(self.device.type, dtype=_DTYPES[self.name])

    def new_scaler(self) -> torch.amp.GradScaler | None:
        """Return a scaler for one optimizer; None where none is needed.

        Each optimizer has a separate one: a scale that changes between the micro-steps of another optimizer's window
        would mix gradients of two scales.
        """
        return torch.amp.GradScaler(self.device.type) if self.name == "fp16" else None

    def close(self) -> None:
        """Restore the setting of tf32. A second call does nothing."""
        if self._restore is not None:
            self._restore()
            self._restore = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _chosen(name: str, device: torch.device) -> tuple[Format, str]:
    """Return the format that a name stands for, and why if it is "auto"."""
    if name == "auto":
        return _default(device)
    if name not in _NAMES:
        best, _ = _default(device)
        raise UnknownPrecision(
            f'"{name}" is not a precision',
            expected='expected one of "auto", "fp32", "bf16", "fp16"',
            remedy=f'use "{best}" on this {_called(device)}',
        )
    return _NAMES[name], ""


def _default(device: torch.device) -> tuple[Format, str]:
    """Return what "auto" chooses on a device, and why."""
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return "bf16", "this GPU computes in bf16, which has the range of fp32 and needs no scaler"
        return "fp16", "this GPU has no bf16; fp16 is its fast format"
    if device.type == "cpu":
        return "fp32", "few CPUs compute faster in bf16, and none in fp16"
    return "fp32", f"mixed precision on {device.type} is not complete"


def _called(device: torch.device) -> str:
    return {"cuda": "GPU", "cpu": "CPU"}.get(device.type, f"{device.type} device")


def _has_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= _TF32_SINCE


def _use_tf32() -> Callable[[], None]:
    """Switch tf32 on for matrix products, unless the user has chosen, and return a function that restores the setting.

    torch has two sets of switches. Once a program has used the newer one, reading the older one raises; once only the
    older one was used, both can be read. So the older one is taken as long as it can be read.
    """
    places = [backend.matmul for backend in (torch.backends.cuda, torch.backends.mkldnn) if hasattr(backend, "matmul")]
    before = [(place, getattr(place, "fp32_precision", None)) for place in places]
    try:
        legacy = torch.get_float32_matmul_precision()
    except RuntimeError:
        legacy = ""
    if legacy not in ("", "highest"):
        return lambda: None
    if legacy:
        torch.set_float32_matmul_precision("high")
    else:
        torch.backends.cuda.matmul.fp32_precision = "tf32"

    def restore() -> None:
        if legacy:
            torch.set_float32_matmul_precision(legacy)
        for place, value in before:
            if value is not None:
                place.fp32_precision = value

    return restore
