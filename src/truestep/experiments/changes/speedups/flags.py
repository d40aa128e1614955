"""Switches of torch that a script sets once: tf32, cuDNN's choice of kernels, the number of threads."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.seams.patch import patch


class Tf32(Speedup):
    """Products of fp32 matrices are computed in tf32, with 10 bits of mantissa, unless the script sets a precision."""

    name = "tf32"
    summary = 'matrix products in tf32: torch.set_float32_matmul_precision("high")'
    lines = 'torch.set_float32_matmul_precision("high")'
    priority = 65
    stage = Stage.SWITCHES
    tolerance = 1e-2
    accelerator = True

    def install(self, stack: ExitStack) -> None:
        import torch

        before = torch.get_float32_matmul_precision()
        if before != "highest":
            return
        self.applied = 1

        def set_float32_matmul_precision(precision: str) -> None:
            self.applied = 0
            set_precision(precision)

        torch.set_float32_matmul_precision("high")
        stack.callback(torch.set_float32_matmul_precision, before)
        set_precision = patch(stack, torch, "set_float32_matmul_precision", set_float32_matmul_precision)


class CudnnBenchmark(Speedup):
    """cuDNN measures its kernels at the first call with each shape, and uses the fastest."""

    name = "cudnn-benchmark"
    summary = "cuDNN chooses kernels by trying them: torch.backends.cudnn.benchmark"
    lines = "torch.backends.cudnn.benchmark = True"
    stage = Stage.SWITCHES
    tolerance = 1e-3
    accelerator = True

    def install(self, stack: ExitStack) -> None:
        import torch

        if not torch.backends.cudnn.benchmark:
            torch.backends.cudnn.benchmark = True
            stack.callback(setattr, torch.backends.cudnn, "benchmark", False)
            self.applied = 1


class _Threads(Speedup):
    phases = ("forward", "backward", "other", "optimizer")
    stage = Stage.SWITCHES
    tolerance = 1e-3

    def wanted(self) -> int:
        """Return the number of threads."""
        raise NotImplementedError

    def install(self, stack: ExitStack) -> None:
        import torch

        before, wanted = torch.get_num_threads(), self.wanted()

        def set_num_threads(number: int) -> None:
            self.applied = int(number != wanted)

        self.applied = int(before != wanted)
        torch.set_num_threads(wanted)
        stack.callback(torch.set_num_threads, before)
        patch(stack, torch, "set_num_threads", set_num_threads)


class OneThread(_Threads):
    """Operations run in one thread, even if the script sets another number."""

    name = "one-thread"
    summary = "one thread for each operation: small models wait for threads longer than they compute"
    lines = "torch.set_num_threads(1)"
    priority = 30
    combines = True
    excludes = ("all-threads",)

    def wanted(self) -> int:
        return 1


class AllThreads(_Threads):
    """Operations run in one thread per processor of this process, even if the script sets another number."""

    name = "all-threads"
    summary = "as many threads for each operation as this process has processors"
    lines = "torch.set_num_threads(len(os.sched_getaffinity(0)))"

    def wanted(self) -> int:
        return processors()


def processors() -> int:
    """Return the number of processors that this process may use."""
    found: Any = getattr(os, "sched_getaffinity", None)
    return len(found(0)) if found is not None else os.cpu_count() or 1
