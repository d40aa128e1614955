"""Floating-point operations (FLOPs): the number per sample of a model, and the peak speed of devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from truestep.errors import BadPart
from truestep.loop.log.throughput import samples_in
from truestep.seams.wrappers import uncompiled

_T = 1e12

PEAKS: dict[str, tuple[float, float, float]] = {
    # name as torch.cuda.get_device_name() has it: (bf16 and fp16, tf32, fp32 without tensor cores), dense, per second
    # https://resources.nvidia.com/en-us-blackwell-architecture: HGX B200, a GPU of eight
    "B200": (2250 * _T, 1100 * _T, 75 * _T),
    # https://resources.nvidia.com/en-us-data-center-overview/h200-datasheet
    "H200 NVL": (835.5 * _T, 417.5 * _T, 60 * _T),
    "H200": (989.5 * _T, 494.5 * _T, 67 * _T),
    # https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet
    "H100 NVL": (835.5 * _T, 417.5 * _T, 60 * _T),
    "H100 PCIe": (756.5 * _T, 378 * _T, 51 * _T),
    "H100": (989.5 * _T, 494.5 * _T, 67 * _T),
    # https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-nvidia-us-2188504-web.pdf
    "A100": (312 * _T, 156 * _T, 19.5 * _T),
    # https://images.nvidia.com/content/Solutions/data-center/vgpu-L40-datasheet.pdf and the L40S and L4 data sheets
    "L40S": (362 * _T, 183 * _T, 91.6 * _T),
    "L40": (181 * _T, 90.5 * _T, 90.5 * _T),
    "L4": (121 * _T, 60 * _T, 30.3 * _T),
    # https://www.nvidia.com/en-us/data-center/products/a10-gpu/ ; the A10G has other clocks, and no published peak
    "A10": (125 * _T, 62.5 * _T, 31.2 * _T),
    # https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf, appendix A (fp32 sums)
    "RTX 4090": (165.2 * _T, 82.6 * _T, 82.6 * _T),
    # https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf, appendix A (fp32 sums)
    "RTX 3090": (71 * _T, 35.6 * _T, 35.6 * _T),
    # https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf (no tf32)
    "V100 SXM2": (125 * _T, 15.7 * _T, 15.7 * _T),
    "V100 PCIE": (112 * _T, 14 * _T, 14 * _T),
    # https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf
    "T4": (65 * _T, 8.1 * _T, 8.1 * _T),
    # https://www.amd.com/content/dam/amd/en/documents/instinct-tech-docs/data-sheets/amd-instinct-mi300x-data-sheet.pdf
    "MI300X": (1307.4 * _T, 653.7 * _T, 163.4 * _T),
}
"""Peak speed of known accelerators."""

_OTHERS = {"D", "Laptop", "Ti", "SUPER", "Max", "MIG"}
"""Words in the name of a different device with the same number, or of a part of a device."""


def peak_flops(device: torch.device, precision: str) -> float | None:
    """Return the peak floating-point operations per second of a device; None if unknown.

    Args:
        device: any device; only CUDA devices are known.
        precision: "bf16", "fp16" or "fp32".
    """
    if device.type != "cuda":
        return None
    return peak_of(torch.cuda.get_device_name(device), precision, tf32=precision == "fp32" and _uses_tf32())


def _uses_tf32() -> bool:
    """Return True if matrix products use tf32; torch's older flag raises an error after use of the newer one."""
    matmul = torch.backends.cuda.matmul
    newer = getattr(matmul, "fp32_precision", None)
    return bool(matmul.allow_tf32) if newer is None else newer == "tf32"


def peak_of(name: str, precision: str, *, tf32: bool = False) -> float | None:
    """Return the peak of the known device with all its words in `name`; None if there is none.

    Example:
        >>> peak_of("NVIDIA A100-SXM4-80GB", "bf16")
        312000000000000.0
        >>> peak_of("NVIDIA A10G", "bf16") is None
        True
    """
    words = set(name.replace("-", " ").split())
    if words & _OTHERS:
        return None
    for known in sorted(PEAKS, key=len, reverse=True):
        if set(known.split()) <= words:
            half, tensor, plain = PEAKS[known]
            return half if precision in ("bf16", "fp16") else tensor if tf32 else plain
    return None


def flops_per_sample(model: nn.Module, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> float:
    """Return the FLOPs of the forward and backward pass for one sample. See `Run.count_flops`."""
    inner: nn.Module = uncompiled(model)
    samples = samples_in([*inputs, *options.values()])
    if samples > 10**9 or not samples:
        raise BadPart(
            "counting the FLOPs of a model needs a batch",
            expected="expected tensors with samples in the first dimension",
            remedy="pass the inputs of the model: run.count_flops(model, x)",
        )
    tensors = {
        name: torch.empty_like(tensor, device="meta")
        for name, tensor in (*inner.named_parameters(), *inner.named_buffers())
    }
    counter = FlopCounterMode(display=False)
    devices = [tensor.device for tensor in inner.parameters() if tensor.device.type == "cuda"]
    try:
        with torch.random.fork_rng(devices=devices[:1]), torch.no_grad(), counter:
            torch.func.functional_call(inner, tensors, _on_meta(inputs), _on_meta(dict(options)))
    except Exception as error:
        raise BadPart(
            f"{type(inner).__name__} cannot be called on the meta device, on which FLOPs are counted: {error}",
            expected="expected a forward pass that reads no values, with only parameters and buffers as tensors",
            remedy="leave run.count_flops() out for this model",
        ) from error
    return 3.0 * counter.get_total_flops() / samples


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to("meta")
    if isinstance(value, Mapping):
        return {key: _on_meta(item) for key, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_on_meta, value))
    return value
