"""Labels of classification losses: is there more than one value, and how often is each class beside its weight?"""

from __future__ import annotations

from typing import Any

from truestep.events import LabelsCounted, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import ignored_index, is_transformed

_OF_CLASSES = ("cross_entropy", "nll_loss")
_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_LARGEST = 1 << 20
_MOST_READS = 48
"""Reads of a line outside of sampled steps, while all its labels are equal."""
_MOST_LINES = 64
_MOST_CLASSES = 64
_DEEPEST = 6
_LEAF = "torch::autograd::AccumulateGrad"
_THROUGH = frozenset({
    "ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0", "SqueezeBackward1",
    "SqueezeBackward2", "UnsqueezeBackward0", "SelectBackward0", "SliceBackward0", "PermuteBackward0",
    "TransposeBackward0", "TransposeBackward1", "TBackward0", "ToCopyBackward0", "LogSoftmaxBackward0",
    "SigmoidBackward0", "AddmmBackward0", "MmBackward0", "AddBackward0", "ConvolutionBackward0", "BmmBackward0",
    "CloneBackward0", "AddmvBackward0", "MvBackward0",
})  # fmt: skip
"""Operations between the weights of a layer of classes and a loss."""


class LabelCounts:
    """Emits `LabelsCounted` until a line has shown two labels, and for weighted losses at each sampled step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._reads: dict[object, int] = {}
        """Kind and site to the number of reads; -1 for one with several labels, without weights."""
        self._steps: dict[object, int] = {}

    def look(
        self, kind: str, site: Site | None, input: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """Count the labels of a call with gradients."""
        scene, key = self._scene, (kind, id(site))
        reads = self._reads.get(key, 0)
        extra = not scene.sampling.on
        if reads < 0 or self._steps.get(key) == scene.sampling.step or len(self._reads) >= _MOST_LINES:
            return
        if extra and (reads >= _MOST_READS or not target.is_cpu):
            return
        if kind in _OF_CLASSES:
            readable = not target.is_floating_point() and input.dim() == target.dim() + 1 and target.dim() > 0
            classes = int(input.shape[1]) if readable else 0
            places: tuple[str, ...] = ("weight",)
        elif kind in _BINARY:
            readable = target.shape == input.shape and target.dim() > 0
            classes = int(input.shape[1]) if readable and input.dim() > 1 else 1
            places = ("weight", "pos_weight")
        else:
            return
        if not readable or not _is_readable(scene.torch, target):
            return
        self._reads[key], self._steps[key] = reads + 1, scene.sampling.step
        given = [kwargs.get(name, args[place] if place < len(args) else None) for place, name in enumerate(places)]
        if kind in _BINARY and given[0] is not None:
            self._reads[key] = -1  # labels with a weight of zero do not count
            return
        weight = given[-1] if kind != "binary_cross_entropy" else None
        with scene.sampling.timed(target):
            self._count(kind, site, input, target, classes, weight, ignored_index(args, kwargs))

    def _count(
        self, kind: str, site: Site | None, input: Any, target: Any, classes: int, weight: Any, ignored: int
    ) -> None:
        scene, target = self._scene, target.detach()
        if kind in _OF_CLASSES:
            target = target[target != ignored]
            if not target.numel():
                return
        least, most = (one.item() for one in target.aminmax())
        factors = kind in _BINARY and isinstance(weight, scene.torch.Tensor)
        weights = _values(scene.torch, weight, weight.numel() if factors else classes, 7 if factors else 4)
        several = least != most
        if several and not weights:
            self._reads[kind, id(site)] = -1
        counts: tuple[int, ...] = ()
        if weights and scene.sampling.on and several:
            if kind in _OF_CLASSES:
                counts = tuple(scene.torch.bincount(target.reshape(-1), minlength=classes).tolist())
            elif bool(((target == 0) | (target == 1)).all()):
                counts = _positives(target, weight)
        scene.tell(
            LabelsCounted,
            kind=kind,
            site=site,
            classes=classes,
            labels=int(target.numel()),
            rows=int(target.shape[0]),
            only=None if several else float(least),
            weight=None if several else self._layer(input, classes),
            counts=counts if len(counts) <= _MOST_CLASSES else (),
            weights=weights if counts and len(counts) <= _MOST_CLASSES else (),
        )

    def _layer(self, input: Any, classes: int) -> int | None:
        """Return the weight of the layer that the input of a loss comes from, if it has a row for each class."""
        queue = [(input.grad_fn, 0)]
        while queue:
            node, depth = queue.pop(0)
            if node is None or depth > _DEEPEST:
                continue
            if node.name() == _LEAF:
                if classes in (*node.variable.shape[:1], *node.variable.shape[-1:]):
                    return self._scene.hold(node.variable).number
            elif node.name() in _THROUGH:
                queue += [(following, depth + 1) for following, _ in node.next_functions]
        return None


def _is_readable(torch: Any, target: Any) -> bool:
    return (
        type(target) is torch.Tensor
        and not target.requires_grad
        and has_values(target)
        and 0 < target.numel() <= _LARGEST
        and not is_transformed(target)
    )


def _positives(target: Any, factors: Any) -> tuple[int, ...]:
    """Return the positive labels of each column that has its own factor, or of all labels for a single one."""
    columns = factors.numel()
    if columns == 1:
        return (int((target == 1).sum()),)
    places = [place for place in range(-factors.dim(), 0) if factors.shape[place] == columns]
    if not places or places[0] < -target.dim() or target.shape[places[0]] != columns:
        return ()
    return tuple((target == 1).movedim(places[0], -1).reshape(-1, columns).sum(0).tolist())


def _values(torch: Any, weight: Any, classes: int, digits: int) -> tuple[float, ...]:
    """Return the weights of the classes, or the factors of positive labels; nothing without any."""
    if not isinstance(weight, torch.Tensor) or not has_values(weight) or is_transformed(weight):
        return ()
    if weight.requires_grad or weight.numel() not in (1, classes) or weight.numel() > _MOST_CLASSES:
        return ()
    values = tuple(float(f"{value:.{digits}g}") for value in weight.detach().reshape(-1).tolist())
    return values if len(values) == classes else values * classes
