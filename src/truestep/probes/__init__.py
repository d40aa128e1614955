"""Probes: they observe a training at the seams of torch, and emit events.

`install` installs all of them; the exit stack removes them exactly.

context: base class and scene, shared by all probes
gradients: states of gradients; clearing, clipping and scaling
backward: backward passes and the autograd graph
forward: calls of models, losses, modes and dropout
optimizer: optimizers and schedulers
data: loaders, batches and processes
files: checkpoints and state dicts
active: active checks on copies
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import CodeType, FunctionType
from typing import Any

from truestep.probes.context.called import Called
from truestep.probes.context.probe import Probe
from truestep.probes.context.scene import Scene
from truestep.seams.patch import patched_codes

_NAMES = ("probes", "seams", "supervision", "rules", "events", "findings", "source", "debugging", "experiments")
_OURS = tuple(f"truestep.{name}" for name in _NAMES)

__all__ = ["Called", "Probe", "Scene", "all_probes", "install", "leave_uncompiled"]


def all_probes() -> list[type[Probe]]:
    """Return every probe, in the order they are installed."""
    from truestep.probes.backward.backward import BackwardProbe
    from truestep.probes.data.loaders import DataProbe
    from truestep.probes.data.processes import ProcessProbe
    from truestep.probes.files.checkpoint import CheckpointProbe
    from truestep.probes.forward.capture import CaptureProbe
    from truestep.probes.forward.dropout import DropoutProbe
    from truestep.probes.forward.loss import LossProbe
    from truestep.probes.forward.mode import ModeProbe
    from truestep.probes.forward.module import ModuleProbe
    from truestep.probes.forward.swap import SwapProbe
    from truestep.probes.gradients.clip import ClipProbe
    from truestep.probes.gradients.scaler import ScalerProbe
    from truestep.probes.gradients.zero import ZeroProbe
    from truestep.probes.optimizer.optimizer import OptimizerProbe
    from truestep.probes.optimizer.scheduler import SchedulerProbe

    return [
        OptimizerProbe, ZeroProbe, BackwardProbe, ModuleProbe, ModeProbe, LossProbe, DropoutProbe,
        ClipProbe, ScalerProbe, SchedulerProbe, DataProbe, CheckpointProbe, ProcessProbe,
        SwapProbe, CaptureProbe,
    ]  # fmt: skip


def install(scene: Scene, stack: ExitStack, *, active: bool = False) -> list[Probe]:
    """Install every probe, that of active checks where asked for; keep torch.compile from compiling our own frames."""
    probes = [cls(scene) for cls in all_probes()]
    if active:
        from truestep.probes.active import ActiveProbe

        probes.append(ActiveProbe(scene))
    for probe in probes:
        try:
            probe.install(stack)
        except Exception:
            scene.fail()
    leave_uncompiled()
    return probes


def leave_uncompiled(alone: Iterable[CodeType] = ()) -> None:
    """Mark this package's code as nothing for TorchDynamo to compile: it runs when a hook fires below a graph break.

    Args:
        alone: code that calls nothing of the user's: what it calls is not compiled either.
    """
    import sys

    from torch._C._dynamo import eval_frame

    try:
        action = eval_frame._FrameAction
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
        with_callees = eval_frame._FrameExecStrategy(action.SKIP, action.SKIP)
        mark = eval_frame.set_code_exec_strategy
    except AttributeError:
        return
    seen: set[int] = set()
    todo: list[CodeType] = []
    for name, module in list(sys.modules.items()):
        if name.startswith(_OURS):
            todo.extend(_codes(module))
    todo.extend(patched_codes())
    while todo:
        code = todo.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        mark(code, strategy)
        todo.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    for code in alone:
        mark(code, with_callees)


def _codes(module: Any) -> list[CodeType]:
    found: list[CodeType] = []
    for value in vars(module).values():
        if isinstance(value, FunctionType):
            found.append(value.__code__)
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for inner in vars(value).values():
                function = getattr(inner, "__func__", getattr(inner, "fget", inner))
                if isinstance(function, FunctionType):
                    found.append(function.__code__)
    return found
