"""Facts about a machine. Sizes are in bytes; None stands for unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass

OLDEST_TORCH = (2, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """The running Python."""

    version: str
    executable: str
    environment: str
    """ "venv", "conda" or "system"."""
    system: str
    """Operating system and architecture, such as "Linux x86_64"."""
    debian: bool = False
    """True if programs are installed with apt."""
    installer: str = "pip install"
    """Command that installs into this environment: one created by uv has no pip."""
    container: bool = False
    """True if it runs in a container (Docker, Podman, Kubernetes)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torch:
    """The build of torch, as it reports in a child process."""

    version: str | None = None
    """None if it is not installed."""
    failure: str | None = None
    """Why it cannot be used, or which answer is missing and why."""
    cuda: str | None = None
    rocm: str | None = None
    cudnn: str | None = None
    architectures: tuple[str, ...] = ()
    """Architectures with kernels in a CUDA build: "sm_90", "compute_90"."""
    warnings: tuple[str, ...] = ()
    """Warnings of torch during its search for accelerators."""
    threads: int | None = None
    sharing: str | None = None
    """How workers pass tensors: "file_descriptor" or "file_system"."""
    backends: tuple[str, ...] = ()
    """Backends of torch.distributed: "gloo", "nccl", "mpi", "ucc", "xccl"."""
    device: str | None = None
    """The device of `Run(device="auto")`."""
    precision: str | None = None
    """The precision of `Run(precision="auto")` on that device."""
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
    """Best time of a square linear layer in one format, forward and backward."""

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
    """Compute capability of an NVIDIA GPU, such as "9.0"."""
    failure: str | None = None
    """Error of a small matrix product on it; None if that worked."""
    native: tuple[str, ...] = ()
    """Formats besides fp32 that it computes in without emulation."""
    speeds: tuple[Speed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Graphics:
    """GPUs as seen without torch."""

    nvidia: int | None = None
    """Number of NVIDIA GPUs on the PCI bus."""
    amd: int | None = None
    driver: str | None = None
    """Version of the loaded NVIDIA driver."""
    driver_cuda: str | None = None
    """Newest CUDA version that the driver's library supports; None without that library."""
    reached: bool = False
    """True if this process can reach the NVIDIA driver: its device files exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Processors:
    """The processors, and the number that this process may use."""

    name: str
    present: int
    allowed: int
    """Number of processors that the process may run on (affinity)."""
    cores: int | None = None
    """Number of physical cores among the allowed processors."""
    load: float | None = None
    """Load average of the whole machine over the last minute."""
    quota: float | None = None
    """CPU quota of a cgroup, in processors."""
    bf16: tuple[str, ...] | None = None
    """Instructions for bf16: "avx512_bf16", "amx_bf16", "bf16" (ARM); None if unknown."""
    speeds: tuple[Speed, ...] = ()

    @property
    def usable(self) -> int:
        """Number of processors that can run at the same time."""
        return self.allowed if self.quota is None else min(self.allowed, max(1, math.ceil(self.quota)))

    @property
    def useful(self) -> int:
        """Number of threads that can compute without sharing a core."""
        return min(self.usable, self.cores or self.usable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Main memory, and the limit of a cgroup."""

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
    """Shared memory, through which the workers of a loader pass batches; Linux only."""

    path: str
    total: int
    free: int
    writable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Handles:
    """Limits on the number of open files of a process; None means unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that a training writes to."""

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
    """Bytes per second of writing and syncing a file of 8 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """Requirements of torch.compile besides torch."""

    path: str | None = None
    version: str = ""
    failure: str | None = None
    """Why it cannot compile a file that includes Python.h and, for the CPU, uses OpenMP."""
    triton: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A package that TrueStep needs, or can use."""

    name: str
    needs: str
    """Version bounds from the metadata of TrueStep, such as ">=1.6,<2"."""
    version: str | None
    extra: str = ""
    """The extra it belongs to; "" for packages that TrueStep always needs."""

    @property
    def fits(self) -> bool:
        return self.version is not None and fits(self.version, self.needs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts about a machine."""

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
    """Names and values of environment variables that change how torch computes."""
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
    """Return True if a version is within bounds of the forms ``>=`` and ``<``; other bounds are ignored.

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
