"""Classes that a classification is trained on: the labels of its losses at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import ClassesTrained, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import ignored_index, is_transformed

_LARGEST = 1 << 16
_MOST_CLASSES = 128


def count_classes(
    scene: Scene, kind: str, site: Site | None, input: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Emit `ClassesTrained` for a loss over classes with whole numbers as targets, at a sampled step."""
    torch = scene.torch
    whole = type(target) is torch.Tensor and not target.is_floating_point() and input.dim() == target.dim() + 1
    if not whole or target.dim() == 0 or not 0 < target.numel() <= _LARGEST or input.shape[1] > _MOST_CLASSES:
        return
    if not has_values(target) or is_transformed(target):
        return
    with scene.sampling.timed(target):
        classes, counts = torch.unique(target.detach().reshape(-1), return_counts=True)
        pairs = zip(classes.tolist(), counts.tolist(), strict=True)
        ignored = ignored_index(args, kwargs)
        labels = tuple((number, count) for number, count in pairs if number != ignored)
    scene.tell(ClassesTrained, kind=kind, classes=int(input.shape[1]), labels=labels, ignored=ignored, site=site)
