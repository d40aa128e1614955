"""Measure the memory that one step of a training needs."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from truestep import seams
from truestep.errors import TrueStepError
from truestep.experiments.instruments.instrument import Instrument
from truestep.experiments.running.inside.outermost_calls import RootCalls
from truestep.seams.wrappers import wrapped_model
from truestep.supervision.session import Stop


class StepNeeds(Instrument):
    """Measures the last of some steps of the first optimizer; then the script is stopped.

    The recorder begins a step earlier, so that it has seen the tensors that the script keeps from one step to the next.

    Args:
        folder: folder for its files.
        script: path or name of the script.
        steps: optimizer steps to run, at least 3: the first one creates the optimizer state.
    """

    name = "needs"

    def __init__(self, folder: Path, script: str, steps: int = 3) -> None:
        super().__init__(folder, script)
        self._wanted = steps
        self._steps = self._passes = 0
        self._first: Callable[[], Any] = lambda: None
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._models = _Models()
        self._recorder: Any = None
        self._allocated = 0
        """Bytes of an accelerator's allocator at the begin of the measured step."""
        self._measured: dict[str, Any] = {}
        self._error: dict[str, str] = {}

    def install(self, stack: ExitStack) -> None:
        self._models.listen(stack)
        seams.backward.watch(stack, before=self._entering, after=lambda _: self._mark("backward end"))
        seams.step.watch(stack, before=lambda *_: self._mark("update"), after=self._stepped)

    def _entering(self, _: Any) -> None:
        self._passes += 1
        self._mark("backward")

    def _mark(self, name: str) -> None:
        if self._recorder is None and (fake := _fake()):
            self._recorder = fake[-1]
        if self._recorder is not None:
            self._recorder.mark(name)

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        self._mark("update end")
        self._optimizers.add(optimizer)
        if self._first() is None:
            self._first = weakref.ref(optimizer)
        if optimizer is not self._first():
            return
        self._steps += 1
        if self._steps == self._wanted - 2:
            self._begin()
        elif self._steps == self._wanted - 1:
            self._start()
        elif self._steps == self._wanted:
            self._measured = self._measure()
            raise Stop

    def _begin(self) -> None:
        from truestep.experiments.instruments.needs.models import storages
        from truestep.experiments.instruments.needs.recorders import ProfilerRecorder

        if not _fake():
            self._recorder = ProfilerRecorder(storages(self._held().gradients))

    def _start(self) -> None:
        import torch

        from truestep.experiments.instruments.needs.models import storages

        held = self._held()
        if held.device.startswith("cuda") and not _fake():
            self._allocated = torch.cuda.memory_allocated(held.device)
        self._recorder.start_step(storages(held.gradients))

    def _held(self) -> Any:
        from truestep.experiments.instruments.needs.models import held

        return held(self._models.seen(), self._optimizers)

    def _measure(self) -> dict[str, Any]:
        from truestep.experiments.instruments.needs.models import blocks, by_type, storages, total

        now, recorder = self._held(), self._recorder
        self._recorder = None
        log = recorder.stop(now.device, storages(now.gradients))
        gradients = recorder.numbers(storages(now.gradients)) | recorder.earlier
        fixed = recorder.numbers(storages([*now.parameters, *now.buffers, *now.state]))
        moments = log.moments(gradients, fixed)
        sizes = {
            "parameters": total(now.parameters),
            "buffers": total(now.buffers),
            "optimizer": total(now.state),
        }
        outside = self._allocated - sum(sizes.values()) - moments["before"] if self._allocated else 0
        return sizes | {
            "gradients": total(now.gradients),
            "types": by_type(now.parameters),
            "trained": sum(parameter.numel() for parameter in now.parameters if parameter.requires_grad),
            "held": max(0, outside),
            "moments": moments,
            "blocks": blocks(self._models.seen()),
            "optimizers": sorted({type(optimizer).__name__ for optimizer in self._optimizers}),
            "models": sorted(type(model).__name__ for model in self._models.seen()),
            "at_once": _at_once(self._optimizers),
            "device": now.device,
            "fake": bool(_fake()),
        }

    def crashed(self, error: BaseException) -> None:
        if isinstance(error, TrueStepError):
            self._error = {"happened": error.happened, "expected": error.expected, "remedy": error.remedy}
        elif _out_of_memory(error):
            self._error = {"memory": str(error).splitlines()[0] if str(error) else type(error).__name__}

    def results(self, how: str) -> dict[str, Any]:
        return {
            "steps": self._steps,
            "passes": self._passes,
            "error": self._error,
            "measured": self._measured,
            "devices": _devices(),
        }


class _Models(RootCalls):
    """Collects models that are called outermost."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[weakref.ref[Any]] = []

    def entered(self, module: Any) -> Any:
        model = wrapped_model(module)
        if self.is_model(model) and not any(ref() is model for ref in self._seen):
            self._seen.append(weakref.ref(model))

    def seen(self) -> list[Any]:
        """Return the models that are alive, without those that are a part of another one."""
        alive = [model for ref in self._seen if (model := ref()) is not None]
        return [
            model
            for model in alive
            if not any(model is part for other in alive if other is not model for part in other.modules())
        ]


def _fake() -> list[Any]:
    """Return the recorders of tensors without memory that are active."""
    from truestep.experiments.instruments.needs.recorders import FakeRecorder

    return list(FakeRecorder.active)


def _at_once(optimizers: Any) -> bool:
    """Return True if torch would step all parameters at once on a GPU, and steps them one by one here."""
    import torch

    return any(
        group.get("foreach", True) is None
        and not group.get("fused")
        and all(parameter.device.type == "cpu" for parameter in group["params"])
        for optimizer in optimizers
        if isinstance(optimizer, torch.optim.Optimizer)
        for group in optimizer.param_groups
    )


def _out_of_memory(error: BaseException) -> bool:
    import torch

    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def _devices() -> list[list[Any]]:
    """Return the name and bytes of each GPU of this machine."""
    import torch

    if not torch.cuda.is_available():
        return []
    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return [[device.name, device.total_memory] for device in found]
