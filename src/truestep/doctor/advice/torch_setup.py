"""Advice on torch: build, visible and invisible accelerators, formats, torch.compile, several processes."""

from __future__ import annotations

from collections.abc import Iterator

from truestep.doctor.advice.advice import GIB, Advice, Level, plural, size
from truestep.doctor.facts import OLDEST_TORCH, Accelerator, Facts, Speed, release

_HIDING = {"CUDA": "CUDA_VISIBLE_DEVICES", "ROCm": "HIP_VISIBLE_DEVICES"}
_WORTH = 1.2
"""Slowdown (as a factor) from which a format is advised against."""
_CUDA_BUILD = "install one for CUDA, see https://pytorch.org/get-started/locally"
_LEAST = ".".join(map(str, OLDEST_TORCH))


def on_build(facts: Facts) -> Iterator[Advice]:
    torch, install = facts.torch, facts.interpreter.installer
    if torch.version is None:
        yield _missing(facts)
    elif torch.too_old:
        text, command = f"TrueStep needs torch {_LEAST} or newer", f'{install} --upgrade "torch>={_LEAST}"'
        yield Advice(Level.PROBLEM, "torch-too-old", "torch", text, command)
    elif torch.failure is not None:
        text = f"torch is installed but does not work ({torch.failure}); read its whole output"
        command = 'python -c "import torch; print(torch.ones(2) @ torch.ones(2))"'
        yield Advice(Level.PROBLEM, "torch-fails", "torch", text, command)


def _missing(facts: Facts) -> Advice:
    graphics, on_linux = facts.graphics, facts.interpreter.system.startswith("Linux")
    install = facts.interpreter.installer
    text, command = "install torch", f'{install} "truestep[torch]"'
    if on_linux and graphics.nvidia == graphics.amd == 0 and not graphics.reached:
        text += (
            "; without a GPU here, its smaller build for the CPU is enough, see https://pytorch.org/get-started/locally"
        )
    return Advice(Level.PROBLEM, "torch-missing", "torch", text, command)


def on_accelerators(facts: Facts) -> Iterator[Advice]:
    for accelerator in facts.accelerators:
        yield from _on_accelerator(accelerator, facts)
    if facts.torch.usable and not facts.torch.too_old and not facts.accelerators:
        yield from _on_unseen(facts)


def _on_accelerator(accelerator: Accelerator, facts: Facts) -> Iterator[Advice]:
    device, architectures, command = accelerator.device, facts.torch.architectures, ""
    lister = "nvidia-smi" if facts.torch.cuda else "rocm-smi --showpids"
    if accelerator.failure is not None:
        mine = (accelerator.capability or "").replace(".", "")
        if mine and architectures and not any(_runs(mine, architecture) for architecture in architectures):
            why = f"this build of torch has kernels for {', '.join(architectures)}, but not for sm_{mine}"
            remedy = "install a build that has them: https://pytorch.org/get-started/locally"
        elif "out of memory" in accelerator.failure:
            why, remedy = "all its memory is in use", "list the programs that use it"
            command = lister
        else:
            why = f"a product of two matrices failed on it ({accelerator.failure})"
            hiding = _HIDING.get(facts.torch.build.split()[0])
            remedy = f"hide it with {hiding}" if hiding else 'train with device="cpu"'
        yield Advice(Level.PROBLEM, "accelerator-fails", device, f"{why}; {remedy}", command)
        return
    if accelerator.memory is not None and accelerator.free is not None:
        held = accelerator.memory - accelerator.free
        if device.startswith("cuda") and held > max(2 * GIB, accelerator.memory // 10):
            text = f"{size(held)} of its memory are in use; list the programs that use it"
            yield Advice(Level.WARNING, "accelerator-memory-held", device, text, lister)


def _runs(capability: str, architecture: str) -> bool:
    """Return True if kernels of an architecture run on a GPU: of its generation, or compiled for it by the driver.

    >>> _runs("86", "sm_80"), _runs("80", "sm_86"), _runs("90", "sm_80"), _runs("120", "compute_90")
    (True, False, False, True)
    """
    kind, _, number = architecture.partition("_")
    digits = number.rstrip("abcdefghijklmnopqrstuvwxyz")
    if not digits.isdigit():
        return False
    if kind == "compute":
        return int(capability) >= int(digits)
    return capability[:-1] == digits[:-1] and int(capability) >= int(digits)


def _on_unseen(facts: Facts) -> Iterator[Advice]:
    """Yield advice on a machine with a GPU that torch does not see."""
    torch, graphics = facts.torch, facts.graphics
    there = bool(graphics.nvidia) or graphics.reached
    if not there or torch.rocm:
        return
    has = f"{plural(graphics.nvidia, 'NVIDIA GPU')}" if graphics.nvidia else "an NVIDIA GPU"
    hidden, command = facts.variable("CUDA_VISIBLE_DEVICES"), ""
    contained = facts.interpreter.container
    if torch.cuda is None:
        text = f"this machine has {has}, but this build of torch is for the CPU; {_CUDA_BUILD}"
        if facts.interpreter.system == "Linux x86_64":  # where the default build is for CUDA
            command = f"{facts.interpreter.installer} --force-reinstall torch"
        if not graphics.reached:
            text += "; " + ("start the container with --gpus all" if contained else "its driver is needed too")
        slug = "accelerator-needs-build"
    elif hidden is not None and _hides(hidden, graphics.nvidia):
        shown = hidden or '""'
        text = f"CUDA_VISIBLE_DEVICES={shown} hides {has} from torch; unset it to train on GPUs"
        slug, command = "accelerator-hidden", "unset CUDA_VISIBLE_DEVICES"
    elif graphics.driver_cuda is None or not graphics.reached:
        remedy = (
            "start the container with --gpus all"
            if contained
            else "install the NVIDIA driver"
            if graphics.driver is None
            else f"the driver {graphics.driver} is loaded; install its library, libcuda.so.1, of the same version"
        )
        slug, text = "accelerator-driver-missing", f"this machine has {has}, but no driver can be reached; {remedy}"
    elif release(graphics.driver_cuda)[:1] < release(torch.cuda)[:1]:
        text = (
            f"the NVIDIA driver supports CUDA up to {graphics.driver_cuda}, but this build needs {torch.cuda}; update "
            f"the driver, or install a build for CUDA {release(graphics.driver_cuda)[0]}"
        )
        slug = "accelerator-driver-old"
    else:
        said = f" (warning of torch: {torch.warnings[0].splitlines()[0]})" if torch.warnings else ""
        text = f"this machine has {has} that torch does not see{said}; check the state reported by the driver"
        slug, command = "accelerator-unseen", "nvidia-smi"
    level = (
        Level.HINT if contained and not graphics.reached else Level.WARNING
    )  # the container was started without GPUs
    yield Advice(level, slug, "accelerator", text, command)


def _hides(value: str, gpus: int | None) -> bool:
    """Return True if a value of CUDA_VISIBLE_DEVICES certainly hides all GPUs.

    >>> _hides("", 1), _hides("-1", 1), _hides("4,5", 4), _hides("0", 4), _hides("GPU-8f3", 4)
    (True, True, True, False, False)
    """
    first = value.split(",")[0].strip()
    if first.isdecimal():
        return gpus is not None and int(first) >= gpus  # CUDA stops at the first invalid number
    return first in ("", "NoDevFiles") or first.startswith("-")


def on_precision(facts: Facts) -> Iterator[Advice]:
    chosen = facts.torch.precision
    for accelerator in facts.accelerators:
        speeds = {speed.format: speed for speed in accelerator.speeds}
        full = speeds.get("tf32") or speeds.get("fp32")
        if chosen in speeds and full is not None and accelerator.device.startswith(facts.torch.device or "none"):
            if _times(speeds[chosen], full) > _WORTH:
                text = (
                    f'pass precision="fp32": {chosen}, the choice of "auto", takes '
                    f"{_times(speeds[chosen], full):.1f} times as long here"
                )
                yield Advice(Level.WARNING, "precision-auto-slow", "precision", text)
    speeds = {speed.format: speed for speed in facts.processors.speeds}
    if facts.accelerators or not speeds.keys() >= {"fp32", "bf16"}:
        return
    times = _times(speeds["bf16"], speeds["fp32"])
    if times > _WORTH:
        text = f'keep precision="fp32" on this CPU, as "auto" does: bf16 takes {_ratio(times)} times as long'
        yield Advice(Level.HINT, "precision-bf16-slow", "precision", text)
    elif 1 / times > _WORTH:
        text = (
            'try precision="bf16", which "auto" does not choose on a CPU: a linear layer is '
            f"{_ratio(1 / times)} times as fast"
        )
        yield Advice(Level.HINT, "precision-bf16-fast", "precision", text)


def _times(slow: Speed, fast: Speed) -> float:
    return slow.seconds / fast.seconds


def _ratio(times: float) -> str:
    """Return a ratio with two significant digits.

    >>> _ratio(4.06), _ratio(28.9)
    ('4.1', '29')
    """
    return f"{times:.1f}" if times < 10 else f"{times:.0f}"


def on_compiling(facts: Facts) -> Iterator[Advice]:
    """Yield advice on the requirements of torch.compile that are missing for the device of trainings here."""
    if not facts.torch.usable:
        return
    compiler, debian = facts.compiler, facts.interpreter.debian
    cuda = any(accelerator.device.startswith("cuda") for accelerator in facts.accelerators)
    if cuda and compiler.triton is None:
        text = "torch.compile needs triton for the GPU, but it is not installed"
        command = f"{facts.interpreter.installer} triton"
        yield Advice(Level.HINT, "compile-triton-missing", "torch.compile", text, command)
    if compiler.path is None:
        if compiler.failure:
            text = f"torch.compile does not work: {compiler.failure}; set it to an existing one"
            command = "unset CXX"
        else:
            text = "torch.compile does not work: no C++ compiler was found; install one"
            command = "apt install g++" if debian else ""
        yield Advice(Level.HINT, "compile-compiler-missing", "torch.compile", text, command)
    elif compiler.failure is not None:
        text = f"torch.compile does not work: {compiler.path} cannot compile a small program ({compiler.failure})"
        command = ""
        if "Python.h" in compiler.failure:
            text += "; install the headers of Python"
            command = f"apt install python{'.'.join(facts.interpreter.version.split('.')[:2])}-dev" if debian else ""
        elif "omp" in compiler.failure:
            text += "; install OpenMP"
            command = "apt install libomp-dev" if debian else ""
        yield Advice(Level.HINT, "compile-compiler-fails", "torch.compile", text, command)


def on_distributed(facts: Facts) -> Iterator[Advice]:
    several = [accelerator for accelerator in facts.accelerators if accelerator.device.startswith("cuda")]
    if len(several) > 1 and facts.torch.usable and "nccl" not in facts.torch.backends:
        text = (
            f"training on {plural(len(several), 'GPU')} at once needs nccl, but this build of torch lacks it; "
            "on Linux the builds of PyPI have it"
        )
        yield Advice(Level.WARNING, "distributed-nccl-missing", "distributed", text)
