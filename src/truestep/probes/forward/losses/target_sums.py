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
        likeness = _likeness(scene, target.detach())
    scene.tell(
        TargetsTrained, kind=kind, rows=len(columns), sums=both[0], squares=both[1], likeness=likeness, site=site
    )


def _likeness(scene: Scene, target: Any) -> float | None:
    """Return the correlation of targets with the input of the model, if both have one shape."""
    given: Any = None if scene.losses.given is None else scene.losses.given()
    if type(given) is not scene.torch.Tensor or given.shape != target.shape or given.device != target.device:
        return None
    if not given.is_floating_point() or not has_values(given) or is_transformed(given):
        return None
    both = scene.torch.stack([given.detach().double().reshape(-1), target.double().reshape(-1)])
    both = both - both.mean(1, keepdim=True)
    sizes = both.square().sum(1)
    return round(float(both.prod(0).sum() / sizes.prod().sqrt()), 3) if bool((sizes > 0).all()) else None
