"""Probes: they observe a training at the seams of torch, and emit events.

`install` installs all of them; the exit stack removes them exactly.

context: base class and scene, shared by all probes
variables: arrays that variables of the program hold, and the lines that make them
copies: copies of the program's objects, and the calls that are repeated on them
gradients: states of gradients; clearing, clipping and scaling
backward: backward passes and the autograd graph
forward: calls of models, losses, modes and dropout
functions: functions of the program that are models
optimizer: optimizers and schedulers
data: loaders, batches and processes
files: checkpoints, state dicts and exported models
active: active checks on copies
ranks: processes that train one model together
embeddings: rows that models read of their embeddings
evaluation: results, comparisons and figures of evaluations
figures: figures of evaluations, by their names
unread: results that a training step makes and nothing reads
"""

from __future__ import annotations

from contextlib import ExitStack

from truestep.probes.context.called import Called
from truestep.probes.context.listener import Listener
from truestep.probes.context.probe import Probe
from truestep.probes.context.scene import Scene
from truestep.seams.tracing import leave_uncompiled

__all__ = ["Called", "Listener", "Probe", "Scene", "all_probes", "install"]


def all_probes() -> list[type[Probe]]:
    """Return every probe, in the order they are installed."""
    from truestep.probes.backward.backward import BackwardProbe
    from truestep.probes.data.loaders import DataProbe
    from truestep.probes.data.processes import ProcessProbe
    from truestep.probes.data.seeds import SeedProbe
    from truestep.probes.data.shuffles import ShuffleProbe
    from truestep.probes.files.checkpoint import CheckpointProbe
    from truestep.probes.files.exported import ExportProbe
    from truestep.probes.forward.capture import CaptureProbe
    from truestep.probes.forward.distributions import DrawProbe
    from truestep.probes.forward.dropout import DropoutProbe
    from truestep.probes.forward.losses.loss import LossProbe
    from truestep.probes.forward.mode import ModeProbe
    from truestep.probes.forward.module import ModuleProbe
    from truestep.probes.forward.swap import SwapProbe
    from truestep.probes.functions.probe import FunctionProbe
    from truestep.probes.gradients.clip import ClipProbe
    from truestep.probes.gradients.scaler import ScalerProbe
    from truestep.probes.gradients.zero import ZeroProbe
    from truestep.probes.optimizer.optimizer import OptimizerProbe
    from truestep.probes.optimizer.scheduler import SchedulerProbe
    from truestep.probes.ranks import RankProbe

    return [
        OptimizerProbe, ZeroProbe, BackwardProbe, ModuleProbe, ModeProbe, LossProbe, DropoutProbe,
        ClipProbe, ScalerProbe, SchedulerProbe, DataProbe, CheckpointProbe, ProcessProbe,
        SwapProbe, CaptureProbe, SeedProbe, ShuffleProbe, DrawProbe, RankProbe, ExportProbe,
        FunctionProbe,
    ]  # fmt: skip


def install(scene: Scene, stack: ExitStack, *, active: bool = False) -> list[Probe]:
    """Install every probe, that of active checks where asked for; keep torch.compile from compiling our own frames."""
    probes = [cls(scene) for cls in all_probes()]
    if active:
        from truestep.probes.active.probe import ActiveProbe

        probes.append(ActiveProbe(scene))
    for probe in probes:
        try:
            probe.install(stack)
        except Exception:
            scene.fail()
    leave_uncompiled()
    return probes
