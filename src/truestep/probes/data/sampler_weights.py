"""Weights of a `WeightedRandomSampler`: their number, and whether frequent classes have the larger ones."""

from __future__ import annotations

from typing import Any

from truestep.probes.context.scene import Scene
from truestep.probes.variables.arrays import arrays_of, as_tensor, shape_of

_MOST = 1 << 20
_MOST_CLASSES = 128
_LEAST_OF_A_CLASS = 8
_LEAST_RATIO = 2.0
_TOLERANCE = 0.05
"""Largest distance between the logarithms of a weight and of the count that it follows."""


def drawn_from(loader: Any) -> tuple[int, int]:
    """Return the number of weights of the sampler of a loader, and of its draws in a pass; zeros for other samplers."""
    weights = _weights(loader)
    return (0, 0) if weights is None else (len(weights), int(loader.sampler.num_samples))


def follow_counts(scene: Scene, loader: Any) -> tuple[int, int]:
    """Return the counts of the most and of the least frequent class, if the weights are in proportion to such counts.

    (0, 0) for other weights, and for data sets without one column of classes.
    """
    weights, torch = _weights(loader), scene.torch
    if weights is None or not _LEAST_OF_A_CLASS <= len(weights) <= _MOST:
        return 0, 0
    weights = weights.double()
    if not bool((weights > 0).all()) or len(weights.unique()) > _MOST_CLASSES:
        return 0, 0
    for one in arrays_of(scene, loader.dataset):
        column = (
            as_tensor(scene, one.value) if shape_of(torch, one.value) in ((len(weights),), (len(weights), 1)) else None
        )
        if column is None or not bool((column == column.round()).all()):
            continue
        classes, of_class, counts = column.reshape(-1).unique(return_inverse=True, return_counts=True)
        if not 2 <= len(classes) <= _MOST_CLASSES or int(counts.min()) < _LEAST_OF_A_CLASS:
            continue
        mean = torch.zeros(len(classes), dtype=torch.float64).index_add_(0, of_class, weights) / counts
        if not bool(((weights - mean[of_class]).abs() <= 1e-6 * mean[of_class]).all()):
            continue
        most, least = int(counts.max()), int(counts.min())
        distance = mean.log() - counts.double().log()
        near = float(distance.max() - distance.min()) <= _TOLERANCE
        return (most, least) if near and most >= _LEAST_RATIO * least else (0, 0)
    return 0, 0


def _weights(loader: Any) -> Any:
    from torch.utils.data import WeightedRandomSampler

    sampler = getattr(loader, "sampler", None)
    return sampler.weights if type(sampler) is WeightedRandomSampler and sampler.replacement else None
