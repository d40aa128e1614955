"""Models compiled by torch.compile, in its modes."""

from __future__ import annotations

import os
import weakref
from contextlib import ExitStack
from typing import Any, ClassVar

from truestep.experiments.changes.parts.speedup import Speedup, Stage
from truestep.experiments.running.inside.one_time import aside
from truestep.experiments.running.inside.outermost_calls import RootCalls
from truestep.seams.wrappers import is_compiled


class Compile(Speedup):
    """Each model is compiled at its first call with gradients enabled. Compilation is one-time work, not step time.

    Args:
        cache: folder for compiled code, shared between processes; None for torch's default.
        fallback_random: True draws random numbers as without the compiler, so that losses can be compared.
    """

    name = "compile"
    summary = "models compiled by torch.compile"
    lines = "model = torch.compile(model)"
    priority = 55
    stage = Stage.COMPILER
    tolerance = 1e-2
    compiles = True
    excludes: ClassVar[tuple[str, ...]] = ("compile-reduce-overhead", "compile-max-autotune")
    checked: ClassVar[dict[str, Any]] = {"fallback_random": True}
    mode: ClassVar[str | None] = None

    def __init__(self, cache: str | None = None, fallback_random: bool = False) -> None:
        super().__init__()
        self._cache = cache
        self._fallback_random = fallback_random

    def install(self, stack: ExitStack) -> None:
        if self._cache is not None and "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = self._cache
            stack.callback(os.environ.pop, "TORCHINDUCTOR_CACHE_DIR", None)
        _Compiling(self, stack, self._fallback_random).listen(stack)


class _Compiling(RootCalls):
    def __init__(self, change: Compile, stack: ExitStack, fallback_random: bool) -> None:
        super().__init__()
        self._change = change
        self._stack = stack
        self._fallback_random = fallback_random
        self._ready = False
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()

    def entered(self, module: Any) -> Any:
        import torch

        if module in self._met or not torch.is_grad_enabled() or not self.is_model(module):
            return
        self._met.add(module)
        if module._compiled_call_impl is not None or is_compiled(module):  # compiled by the script
            return
        with aside():
            self._prepare()
            own = vars(module).get("forward")
            # `Module.compile` finds nothing to compile in the classes of torch.nn, such as Sequential
            module.forward = torch.compile(module.forward, mode=self._change.mode)
        if own is None:
            self._stack.callback(vars(module).pop, "forward", None)
        else:
            self._stack.callback(setattr, module, "forward", own)

    def _prepare(self) -> None:
        if self._ready:
            return
        import torch._dynamo
        import torch._inductor.config
        from torch._dynamo.callback import CallbackTrigger, callback_handler

        self._ready = True
        if self._fallback_random:
            before = torch._inductor.config.fallback_random
            torch._inductor.config.fallback_random = True
            self._stack.callback(setattr, torch._inductor.config, "fallback_random", before)

        def begun(call: Any) -> None:
            aside.begin()

        def ended(call: Any) -> None:
            aside.end()
            if call.callback_trigger is CallbackTrigger.DYNAMO:
                self._change.applied += torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0

        callback_handler.register_start_callback(begun)
        callback_handler.register_end_callback(ended)
        self._stack.callback(callback_handler.remove_start_callback, begun)
        self._stack.callback(callback_handler.remove_end_callback, ended)


class CompileReduceOverhead(Compile):
    """torch.compile with CUDA graphs, which launch all kernels of a step at once."""

    name = "compile-reduce-overhead"
    summary = "models compiled with CUDA graphs (mode reduce-overhead)"
    lines = 'model = torch.compile(model, mode="reduce-overhead")'
    accelerator = True
    priority = 0
    excludes = ("compile-max-autotune",)
    mode = "reduce-overhead"


class CompileMaxAutotune(Compile):
    """torch.compile with kernels that are selected by measuring them."""

    name = "compile-max-autotune"
    summary = "models compiled with kernels chosen by trying them (mode max-autotune)"
    lines = 'model = torch.compile(model, mode="max-autotune")'
    accelerator = True
    priority = 0
    excludes = ()
    mode = "max-autotune"
