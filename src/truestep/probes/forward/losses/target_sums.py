"""Targets that a regression or a binary classification is trained on: their sums at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import Site, TargetsTrained
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import is_transformed

KINDS = frozenset({"mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"})
_LARGEST = 1 << 18
_MOST_COLUMNS = 64


def sum_targets(
    scene: Scene, kind: str, site: Site | None, input: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Emit `TargetsTrained` for a loss without weights whose targets have the shape of its input."""
    torch = scene.torch
    weighted = any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values()))
    if weighted or type(target) is not torch.Tensor or target.shape != input.shape or target.requires_grad:
        return
    if not 0 < target.numel() <= _LARGEST or not target.is_floating_point():
        return
    if not has_values(target) or is_transformed(target):
        return
    with scene.sampling.timed(target):
        columns = target.detach().double()
        few = target.dim() == 2 and target.shape[1] <= _MOST_COLUMNS
        columns = columns if few else columns.reshape(-1, 1)
        sums, squares = columns.sum(0), columns.square().sum(0)
        both = [tuple(float(f"{number:.12g}") for number in part.tolist()) for part in (sums, squares)]
    scene.tell(TargetsTrained, kind=kind, rows=len(columns), sums=both[0], squares=both[1], site=site)
