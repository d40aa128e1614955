"""Machines that are not here: facts as `truestep.doctor` would find them there."""

from dataclasses import replace

from truestep.doctor.facts import (
    Accelerator,
    Compiler,
    Facts,
    Folder,
    Graphics,
    Handles,
    Interpreter,
    Memory,
    Package,
    Processors,
    Shared,
    Speed,
    Torch,
)

MIB, GIB = 2**20, 2**30


def speeds(size, **seconds):
    return tuple(Speed(format=name, seconds=taken, size=size) for name, taken in seconds.items())


WELL = Facts(
    truestep="0.1.0",
    interpreter=Interpreter(
        version="3.12.4",
        executable="/home/ada/.venv/bin/python",
        environment="venv",
        system="Linux x86_64",
        debian=True,
    ),
    torch=Torch(
        version="2.9.0+cpu",
        threads=4,
        sharing="file_descriptor",
        backends=("gloo",),
        device="cpu",
        precision="fp32",
        precision_reason="few CPUs compute faster in bf16, and none in fp16",
    ),
    graphics=Graphics(nvidia=0, amd=0),
    accelerators=(),
    processors=Processors(
        name="Intel Core i5", present=8, allowed=8, cores=4, load=0.4, bf16=(), speeds=speeds(256, fp32=1e-3, bf16=1e-3)
    ),
    memory=Memory(total=32 * GIB, available=24 * GIB),
    shared=Shared(path="/dev/shm", total=16 * GIB, free=16 * GIB, writable=True),
    handles=Handles(soft=65536, hard=1048576),
    folders=(
        Folder(
            role="runs", path="/home/ada/lab", total=500 * GIB, free=200 * GIB, system="ext4", write_speed=400 * MIB
        ),
        Folder(role="temporary", path="/tmp", total=500 * GIB, free=200 * GIB, system="ext4", write_speed=400 * MIB),
    ),
    compiler=Compiler(path="/usr/bin/g++", version="13.2.0"),
    variables=(),
    packages=(
        Package(name="rich", needs=">=13.9", version="14.1.0"),
        Package(name="torch", needs=">=2.8", version="2.9.0+cpu", extra="torch"),
        Package(name="torchmetrics", needs=">=1.6", version=None, extra="metrics"),
    ),
)
"""A desktop without a GPU, on which nothing is to be mended."""


def machine(start=WELL, **changes):
    """Facts of a machine with changes: `torch__threads=64` changes the field `threads` of `torch`."""
    for name, value in changes.items():
        part, _, field = name.partition("__")
        start = replace(start, **{part: replace(getattr(start, part), **{field: value}) if field else value})
    return start


def with_runs(**changes):
    """The desktop with another folder for runs."""
    runs, temporary = WELL.folders
    return replace(WELL, folders=(replace(runs, **changes), temporary))


H100 = Accelerator(
    device="cuda:0",
    name="NVIDIA H100 80GB HBM3",
    memory=80 * GIB,
    free=79 * GIB,
    capability="9.0",
    native=("tf32", "bf16", "fp16"),
    speeds=speeds(4096, fp32=8e-3, tf32=1e-3, bf16=6e-4, fp16=6e-4),
)
SERVER = machine(
    torch=Torch(
        version="2.9.0+cu128",
        cuda="12.8",
        cudnn="9.10.2",
        architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        threads=32,
        sharing="file_descriptor",
        backends=("gloo", "nccl"),
        device="cuda",
        precision="bf16",
        precision_reason="this GPU computes in bf16, which has the range of fp32 and needs no scaler",
    ),
    graphics=Graphics(nvidia=2, amd=0, driver="570.86.15", driver_cuda="12.8", reached=True),
    accelerators=(H100, replace(H100, device="cuda:1", speeds=())),
    processors=Processors(
        name="Intel Xeon", present=64, allowed=64, cores=32, load=2.0, bf16=("avx512_bf16", "amx_bf16")
    ),
    memory=Memory(total=512 * GIB, available=480 * GIB),
    compiler=Compiler(path="/usr/bin/g++", version="13.2.0", triton="3.5.0"),
)
"""Two H100, on which nothing is to be mended."""


def unseen(**changes):
    """The server, where torch sees no GPU."""
    start = machine(SERVER, accelerators=(), torch__device="cpu", torch__precision="fp32")
    return machine(start, **changes)


def failing(**changes):
    """The server, where its only GPU fails."""
    return replace(SERVER, accelerators=(replace(H100, speeds=(), **changes),))
