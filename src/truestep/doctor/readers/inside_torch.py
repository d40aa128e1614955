"""The queries to torch. They run in a child process: `ask_torch` starts it and reads its answers.

Each answer is one line of JSON, written as soon as it is known, so that a later crash or hang does not lose it.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

ANSWERS = ("version", "build", "device", "accelerators", "speeds")
"""Names of the answers, in their order."""
_BUDGET_S = 0.2
"""Time for the measurement of each format; it is measured at least three times."""
_LONGEST_S = 0.004
"""A larger layer is timed as well if the slowest format takes at most this long for the small one."""
_SIZES = {"cpu": (256, 1024), "cuda": (1024, 4096)}
_TF32_SINCE = 80


def main() -> None:
    """Write all answers to the stream that the parent reads."""
    out = sys.stdout
    sys.stdout = sys.stderr  # keeps output of torch out of the answers
    warned: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, answer in _answers():
            if name == "accelerators":
                warned = list(dict.fromkeys(str(warning.message).strip() for warning in caught))
            out.write("\n" + json.dumps({name: answer, "warnings": warned}) + "\n")
            out.flush()


def _answers() -> Iterator[tuple[str, Any]]:
    import torch

    yield "version", str(torch.__version__)
    yield "build", _build(torch)
    yield "device", _chosen(torch)
    seen = list(_accelerators(torch))
    yield "accelerators", seen
    torch.set_num_threads(1)  # on a busy machine, the wait of threads for each other would be timed
    yield "speeds", [] if seen else _speeds(torch, "cpu", ("fp32", "bf16"))


def _build(torch: Any) -> dict[str, Any]:
    import torch.multiprocessing

    cudnn = torch.backends.cudnn.version() if torch.version.cuda or torch.version.hip else None
    return {
        "cuda": torch.version.cuda,
        "rocm": torch.version.hip,
        "cudnn": _cudnn(cudnn) if cudnn else None,
        "architectures": torch.cuda.get_arch_list() if torch.version.cuda and torch.cuda.is_available() else [],
        "threads": torch.get_num_threads(),
        "sharing": torch.multiprocessing.get_sharing_strategy(),
        "backends": _backends(),
    }


def _cudnn(number: int) -> str:
    """Return cuDNN's version from its number.

    >>> _cudnn(91002), _cudnn(8902)
    ('9.10.2', '8.9.2')
    """
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def _backends() -> list[str]:
    import torch.distributed as distributed

    if not distributed.is_available():
        return []
    names = ("gloo", "nccl", "mpi", "ucc", "xccl")
    return [name for name in names if getattr(distributed, f"is_{name}_available", lambda: False)()]


def _chosen(torch: Any) -> dict[str, str]:
    """Return the device and precision that a run chooses for "auto"."""
    from truestep.loop.optim.precision import Precision
    from truestep.loop.process.device import pick

    device = pick()
    with Precision("auto", device, tf32=False) as precision:
        return {"device": str(device), "precision": precision.name, "precision_reason": precision.reason}


def _accelerators(torch: Any) -> Iterator[dict[str, Any]]:
    if not torch.accelerator.is_available():
        return
    kind = torch.accelerator.current_accelerator().type
    timed: set[str] = set()
    for number in range(torch.accelerator.device_count()):
        device = torch.device(kind, number)
        described = _cuda(torch, number) if kind == "cuda" else _other(torch, device)
        described["failure"] = _failure(torch, device)
        if described["failure"] is None and described["name"] not in timed:
            timed.add(described["name"])
            described["speeds"] = _speeds(torch, device, ("fp32", *described["native"]))
        yield described


def _cuda(torch: Any, number: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(number)
    rank = properties.major * 10 + properties.minor
    rocm = torch.version.hip is not None
    native = [
        name
        for name, there in (
            ("tf32", not rocm and rank >= _TF32_SINCE),
            ("bf16", rocm or rank >= _TF32_SINCE),
            ("fp16", rocm or rank >= 53),
        )
        if there
    ]
    try:
        free = torch.cuda.mem_get_info(number)[0]
    except RuntimeError:
        free = None
    return {
        "device": f"cuda:{number}",
        "name": properties.name,
        "memory": properties.total_memory,
        "free": free,
        "capability": None if rocm else f"{properties.major}.{properties.minor}",
        "native": native,
    }


def _other(torch: Any, device: Any) -> dict[str, Any]:
    """Return the facts about a device of another kind, of which torch reports little."""
    described: dict[str, Any] = {"device": device.type, "name": device.type, "native": ["fp16"]}
    if device.type == "mps":
        import platform

        described |= {"name": f"Apple GPU ({platform.processor()})", "memory": torch.mps.recommended_max_memory()}
    elif device.type == "xpu":
        properties = torch.xpu.get_device_properties(device)
        described |= {"device": str(device), "name": properties.name, "memory": properties.total_memory}
        described["native"] = ["bf16", "fp16"]
    return described


def _failure(torch: Any, device: Any) -> str | None:
    """Return the reason why a small matrix product fails on a device; None if its result is right."""
    try:
        product = torch.ones(64, 64, device=device) @ torch.ones(64, 64, device=device)
        return None if bool((product == 64).all()) else "a product of two matrices has a wrong result"
    except Exception as error:  # any error here would occur in training too
        return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _speeds(torch: Any, device: Any, formats: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the times of a linear layer in each format; of a larger one if the small one is too fast to measure."""
    before = torch.get_float32_matmul_precision()
    timed: dict[str, dict[str, Any]] = {}
    for size in _SIZES.get(torch.device(device).type, _SIZES["cuda"]):
        if timed and max(speed["seconds"] for speed in timed.values()) > _LONGEST_S:
            break
        try:
            timed = {name: _speed(torch, device, name, size) for name in formats}
        except Exception:  # the device lacks the format or the memory
            break
    torch.set_float32_matmul_precision(before)
    return list(timed.values())


def _speed(torch: Any, device: Any, name: str, size: int) -> dict[str, Any]:
    """Return the time of a linear layer, forward and backward, with the layouts and casts of a training.

    On the CPU the clock of the thread is used, which stops while other programs have the processor.
    """
    layer = torch.nn.Linear(size, size, bias=False, device=device)
    inputs = torch.full((size, size), 0.5, device=device, requires_grad=True)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
    on_cpu = inputs.device.type == "cpu"
    wait: Callable[[Any], None] = (lambda _: None) if on_cpu else torch.accelerator.synchronize
    clock = time.thread_time if on_cpu and sys.platform != "win32" else time.perf_counter
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    best = float("inf")
    start = clock()
    for count in range(1, 101):
        before = clock()
        with torch.autocast(inputs.device.type, dtype=dtype, enabled=dtype is not None):
            outputs = layer(inputs)
        torch.autograd.grad(outputs, (inputs, layer.weight), outputs.detach())
        wait(inputs.device)
        now = clock()
        best = min(best, now - before)
        if now - start > _BUDGET_S and count >= 3:
            break
    return {"format": name, "seconds": max(best, 1e-9), "size": size}
