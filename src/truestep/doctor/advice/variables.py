"""Advice on environment variables that are set here and slow down or endanger a training."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.doctor.advice.advice import Advice, Level
from truestep.doctor.facts import Facts

_OFF = {"", "0", "false", "no", "off"}

_EVERYWHERE = {
    "TORCHDYNAMO_DISABLE": (Level.WARNING, "torch.compile does nothing; unset it to compile"),
    "TORCH_COMPILE_DISABLE": (Level.WARNING, "torch.compile does nothing; unset it to compile"),
    "TORCH_COMPILE_DEBUG": (
        Level.WARNING,
        "torch.compile writes every step to torch_compile_debug; unset it to train",
    ),
    "KMP_DUPLICATE_LIB_OK": (
        Level.WARNING,
        "lets two OpenMP libraries run in one process, which can crash it or make results wrong (Intel's words); find "
        "the package that brings the second one, and unset it",
    ),
    "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": (
        Level.WARNING,
        "torch.load runs any code in a file; unset it, and pass weights_only=False for trusted files",
    ),
    "PYTORCH_JIT_LOG_LEVEL": (Level.HINT, "torch.jit logs its actions; unset it to train"),
}
_ON_CUDA = {
    "CUDA_LAUNCH_BLOCKING": (
        Level.WARNING,
        "the CPU waits for each kernel, so nothing overlaps; unset it unless you look for the line of a CUDA error",
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (
        Level.WARNING,
        "every tensor is allocated by the driver, which waits for the GPU; unset it unless you look for memory errors",
    ),
    "TORCH_CUDA_SANITIZER": (Level.WARNING, "each kernel is checked for races on streams; unset it to train"),
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": (
        Level.HINT,
        "fp32 products have 10 bits of mantissa (tf32), even if the program requests all 23; unset it to get them",
    ),
}
_RANKS = {
    "NCCL_P2P_DISABLE": "GPUs send to each other through main memory",
    "NCCL_SHM_DISABLE": "ranks of one machine do not use shared memory",
    "NCCL_IB_DISABLE": "ranks do not use InfiniBand",
}


def on_variables(facts: Facts) -> Iterator[Advice]:
    cuda = sum(accelerator.device.startswith("cuda") for accelerator in facts.accelerators)
    set_here = {name: value for name, value in facts.variables if value.lower() not in _OFF}
    for name, (level, text) in (_EVERYWHERE | (_ON_CUDA if cuda else {})).items():
        if name in set_here:
            yield _advice(level, name, text)
    if cuda > 1:
        for name, text in _RANKS.items():
            if name in set_here:
                yield _advice(Level.HINT, name, f"{text}, which is slower where it works; unset it if it does")
    if set_here.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        text = "every collective call is checked between all ranks first; set it to INFO, or unset it, to train"
        yield _advice(Level.WARNING, "TORCH_DISTRIBUTED_DEBUG", text)
    if "PYTORCH_ENABLE_MPS_FALLBACK" in set_here and any(one.device == "mps" for one in facts.accelerators):
        text = "operations that mps lacks run on the CPU, with a copy there and back; a warning names each once"
        yield _advice(Level.HINT, "PYTORCH_ENABLE_MPS_FALLBACK", text)
    tf32 = any("tf32" in accelerator.native for accelerator in facts.accelerators)
    if facts.variable("NVIDIA_TF32_OVERRIDE") == "0" and tf32:
        text = "tf32 is off in all libraries of NVIDIA, even if a program requests it; unset it for faster products"
        yield _advice(Level.HINT, "NVIDIA_TF32_OVERRIDE", text)
    if cuda and "CUBLAS_WORKSPACE_CONFIG" in set_here:
        value = set_here["CUBLAS_WORKSPACE_CONFIG"]
        if value not in (":4096:8", ":16:8"):
            text = "deterministic=True and torch.use_deterministic_algorithms need :4096:8 or :16:8"
            yield _advice(Level.HINT, "CUBLAS_WORKSPACE_CONFIG", text)


def _advice(level: Level, name: str, text: str) -> Advice:
    return Advice(level, f"variable-{name.lower().replace('_', '-')}", name, text)
