"""What was read and measured on a machine. Sizes are bytes; None is what cannot be known there."""

from __future__ import annotations

import math
from dataclasses import dataclass

OLDEST_TORCH = (2, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The Python that runs."""

    version: str
    executable: str
    environment: str
    """ "venv", "conda" or "system"."""
    system: str
    """Operating system and architecture, such as "Linux x86_64"."""
    debian: bool = False
    """Whether programs are installed with apt."""
    installer: str = "pip install"
    """What installs into this environment: one made by uv has no pip."""
    container: bool = False
    """Whether it runs in a container (Docker, Podman, Kubernetes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """The build of torch, as it says itself in a process of its own."""

    version: str | None = None
    """None where it is not installed."""
    failure: str | None = None
    """Why it cannot be used, or how far its answers came."""
    cuda: str | None = None
    rocm: str | None = None
    cudnn: str | None = None
    architectures: tuple[str, ...] = ()
    """What a CUDA build holds kernels for: "sm_90", "compute_90"."""
    warnings: tuple[str, ...] = ()
    """What torch said while it looked for accelerators."""
    threads: int | None = None
    sharing: str | None = None
    """How workers hand tensors over: "file_descriptor" or "file_system"."""
    backends: tuple[str, ...] = ()
    """Of torch.distributed: "gloo", "nccl", "mpi", "ucc", "xccl"."""
    device: str | None = None
    """What `Run(device="auto")` takes."""
    precision: str | None = None
    """What `Run(precision="auto")` takes there."""
    precision_reason: str = ""

    @property
    def build(self) -> str:
        return f"CUDA {self.cuda}" if self.cuda else f"ROCm {self.rocm}" if self.rocm else "CPU"

    @property
    def too_old(self) -> bool:
        return self.version is not None and release(self.version) < OLDEST_TORCH

    @property
    def usable(self) -> bool:
        return self.version is not None and self.failure is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How long a square linear layer takes in one format, forward and backward, at best."""

    format: str
    """ "fp32", "tf32", "bf16" or "fp16"."""
    seconds: float
    size: int

    @property
    def tflops(self) -> float:
        return 6 * self.size**3 / self.seconds / 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A device that torch sees."""

    device: str
    """ "cuda:0", "mps"."""
    name: str
    memory: int | None = None
    free: int | None = None
    capability: str | None = None
    """Of an NVIDIA GPU, such as "9.0"."""
    failure: str | None = None
    """What it answered to a small product of matrices, where that failed."""
    native: tuple[str, ...] = ()
    """The formats it computes in without emulation, beside fp32."""
    speeds: tuple[Speed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphics:
    """What can be seen of GPUs without torch."""

    nvidia: int | None = None
    """GPUs of NVIDIA on the PCI bus."""
    amd: int | None = None
    driver: str | None = None
    """The loaded NVIDIA driver."""
    driver_cuda: str | None = None
    """The newest CUDA that the driver's library knows; None where there is no such library."""
    reached: bool = False
    """Whether the NVIDIA driver is within reach of this process: its device files are there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """The processors, and how many of them this process may use."""

    name: str
    present: int
    allowed: int
    """Those that the process may run on (affinity)."""
    cores: int | None = None
    """Physical cores among the allowed ones."""
    load: float | None = None
    """How many programs wanted to run at once on the whole machine, in the mean of the last minute."""
    quota: float | None = None
    """Processors' worth of time that a cgroup grants."""
    bf16: tuple[str, ...] | None = None
    """The instructions it has for bf16: "avx512_bf16", "amx_bf16", "bf16" (ARM); None where that cannot be read."""
    speeds: tuple[Speed, ...] = ()

    @property
    def usable(self) -> int:
        """How many run at the same time."""
        return self.allowed if self.quota is None else min(self.allowed, max(1, math.ceil(self.quota)))

    @property
    def useful(self) -> int:
        """How many threads compute without sharing a core."""
        return min(self.usable, self.cores or self.usable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory, and what a cgroup leaves of it."""

    total: int | None = None
    available: int | None = None
    limit: int | None = None
    limit_free: int | None = None

    @property
    def free(self) -> int | None:
        known = [size for size in (self.available, self.limit_free) if size is not None]
        return min(known, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Shared memory, through which the workers of a loader hand over batches; Linux only."""

    path: str
    total: int
    free: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """How many files a process may have open; None is no limit."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that training writes to."""

    role: str
    """ "runs" or "temporary"."""
    path: str
    total: int | None = None
    free: int | None = None
    files_free: int | None = None
    system: str | None = None
    """The type of its file system, such as "ext4"."""
    network: bool = False
    failure: str | None = None
    """Why a file could not be written there."""
    read_only: bool = False
    write_speed: float | None = None
    """Bytes per second, of a file of 8 MiB that is written and brought to the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """What torch.compile needs beside torch."""

    path: str | None = None
    version: str = ""
    failure: str | None = None
    """Why it does not translate a file that includes Python.h and, for the CPU, uses OpenMP."""
    triton: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that TrueStep needs, or can use."""

    name: str
    needs: str
    """As the package's metadata has it, such as ">=1.6,<2"."""
    version: str | None
    extra: str = ""
    """The extra it belongs to; empty for those that TrueStep always needs."""

    @property
    def fits(self) -> bool:
        return self.version is not None and fits(self.version, self.needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that was found."""

    truestep: str
    interpreter: Interpreter
    torch: Torch
    graphics: Graphics
    accelerators: tuple[Accelerator, ...]
    processors: Processors
    memory: Memory
    shared: Shared | None
    handles: Handles | None
    folders: tuple[Folder, ...]
    compiler: Compiler
    variables: tuple[tuple[str, str], ...]
    """Names and values of the variables that change how torch computes."""
    packages: tuple[Package, ...]

    def variable(self, name: str) -> str | None:
        return dict(self.variables).get(name)


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version.

    >>> release("2.13.0+cpu"), release("2.9.0a0+git1"), release("unknown")
    ((2, 13, 0), (2, 9, 0), ())
    """
    found: list[int] = []
    for part in version.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    return tuple(found)


def fits(version: str, needs: str) -> bool:
    """Whether a version is within bounds of the forms ``>=`` and ``<``; others hold nothing.

    >>> fits("1.6.1", ">=1.6,<2"), fits("2.0", ">=1.6,<2"), fits("1.5", ">=1.6"), fits("2.8.0", ">=2.8")
    (True, False, False, True)
    """
    has = _trimmed(release(version))
    for bound in filter(None, (piece.strip() for piece in needs.split(","))):
        if bound.startswith(">=") and has < _trimmed(release(bound[2:].strip())):
            return False
        if bound.startswith("<") and not bound.startswith("<=") and has >= _trimmed(release(bound[1:].strip())):
            return False
    return True


def _trimmed(numbers: tuple[int, ...]) -> tuple[int, ...]:
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers
