"""Recommended speed-ups that can be applied from outside: every module of this folder, found by listing it.

bf16_autocast: forward passes and losses under autocast to bf16
channels_last: convolutions and images in memory format channels_last
compiled: torch.compile, in its modes
copies_to_gpu: pinned batches, and copies to the GPU that do not block
flags: switches of torch: tf32, cuDNN's choice of kernels, number of threads
fused_optimizer: optimizers with fused or foreach kernels
gradients_to_none: zero_grad drops gradients
inference_mode: evaluations under inference mode
larger_batch: twice the batch size
loader_workers: workers of loaders, their lifetime and their prefetching
nothing: the control
recomputation: activations recomputed in the backward pass
whole_batches: batches read by one index

loader_arguments: base of speed-ups that change arguments of loaders
model_changes: base of speed-ups that change a model at its first call
speedup: base of all
"""

from __future__ import annotations

from truestep.experiments.changes.parts.discovery import changes_in
from truestep.experiments.changes.speedups.speedup import Speedup

SPEEDUPS: dict[str, type[Speedup]] = {
    kind.name: kind
    for kind in sorted(
        (kind for kind in changes_in(__name__) if issubclass(kind, Speedup)), key=lambda kind: kind.stage
    )
}
"""All speed-ups by name, in the order of their installation."""

__all__ = ["SPEEDUPS", "Speedup"]
