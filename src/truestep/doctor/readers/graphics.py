"""GPUs and their driver as seen without torch, to explain why torch sees none."""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from pathlib import Path

from truestep.doctor.facts import Graphics

_NVIDIA, _AMD = "0x10de", "0x1002"


def graphics(root: Path = Path("/")) -> Graphics:
    """Return the GPUs on the PCI bus and the NVIDIA driver."""
    vendors, newest = _vendors(root), _driver_cuda()
    return Graphics(
        nvidia=None if vendors is None else vendors.count(_NVIDIA),
        amd=None if vendors is None else vendors.count(_AMD),
        driver=_driver(root),
        driver_cuda=newest,
        reached=(root / "dev/nvidiactl").exists() or (newest is not None and _without_nodes(root)),
    )


def _vendors(root: Path) -> list[str] | None:
    """Return the vendor of every display controller and accelerator on the PCI bus; None if the bus is not listed."""
    bus = root / "sys/bus/pci/devices"
    if not bus.is_dir():
        return None
    found: list[str] = []
    for device in bus.iterdir():
        with contextlib.suppress(OSError):
            kind = (device / "class").read_text(encoding="utf-8").strip()
            if kind.startswith(("0x03", "0x12")):
                found.append((device / "vendor").read_text(encoding="utf-8").strip())
    return found


def _without_nodes(root: Path) -> bool:
    """Return True if the driver needs no device files of NVIDIA: on Windows, and on Linux in Windows (WSL)."""
    return sys.platform == "win32" or (root / "dev/dxg").exists()


def _driver(root: Path) -> str | None:
    try:
        text = (root / "proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else None


def _driver_cuda() -> str | None:
    """Return the newest CUDA version that the driver's library supports; nothing is started on the GPU."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    version = ctypes.c_int(0)
    try:
        if ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(version)) != 0:
            return None
    except (OSError, AttributeError):
        return None
    return f"{version.value // 1000}.{version.value % 1000 // 10}" if version.value else None
