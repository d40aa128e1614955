"""Speed-ups that everybody recommends, each as a change that can be made from outside, in the order of installing."""

from __future__ import annotations

from truestep.experiments.changes.speedups.bf16_autocast import Bf16Autocast
from truestep.experiments.changes.speedups.channels_last import ChannelsLast
from truestep.experiments.changes.speedups.compiled import Compile, CompileMaxAutotune, CompileReduceOverhead
from truestep.experiments.changes.speedups.flags import AllThreads, CudnnBenchmark, OneThread, Tf32
from truestep.experiments.changes.speedups.fused_optimizer import ForeachOptimizer, FusedOptimizer
from truestep.experiments.changes.speedups.gradients_to_none import GradientsToNone
from truestep.experiments.changes.speedups.inference_mode import InferenceMode
from truestep.experiments.changes.speedups.loader_workers import (
    LargerBatch,
    LoaderWorkers,
    PersistentWorkers,
    PinMemory,
    Prefetch,
)
from truestep.experiments.changes.speedups.non_blocking import NonBlocking
from truestep.experiments.changes.speedups.nothing import Nothing
from truestep.experiments.changes.speedups.recomputation import ActivationCheckpointing
from truestep.experiments.changes.speedups.speedup import Tuning
from truestep.experiments.changes.speedups.whole_batches import SamplesOnce, WholeBatches

_TUNINGS: tuple[type[Tuning], ...] = (
    Nothing,
    FusedOptimizer,
    ForeachOptimizer,
    Tf32,
    CudnnBenchmark,
    OneThread,
    AllThreads,
    GradientsToNone,
    PinMemory,
    NonBlocking,
    PersistentWorkers,
    Prefetch,
    LoaderWorkers,
    WholeBatches,
    SamplesOnce,
    LargerBatch,
    ChannelsLast,
    ActivationCheckpointing,
    Compile,
    CompileReduceOverhead,
    CompileMaxAutotune,
    Bf16Autocast,
    InferenceMode,
)
"""Order of installation: loader settings come before workers, and autocast wraps compiled code."""

TUNINGS: dict[str, type[Tuning]] = {tuning.name: tuning for tuning in _TUNINGS}
"""All speed-ups by name."""

__all__ = ["TUNINGS", "Tuning"]
