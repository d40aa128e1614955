"""Targets that are the input of their loss: its largest entry, rounding or softmax. Read at sampled steps."""

from __future__ import annotations

from typing import Any

from truestep.events import Site, TargetsMatched
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.data_targets import is_of_data
from truestep.probes.forward.losses.label_values import is_transformed

_REGRESSION = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_OF_CLASSES = ("cross_entropy", "nll_loss")
_MOST_LINES = 32
_LARGEST = 1 << 22
_LEAST = 8
_CLOSE = 1e-5
_DECISIONS = {"binary_cross_entropy": 0.5, "binary_cross_entropy_with_logits": 0.0}


class OwnTargets:
    """Emits `TargetsMatched` until a line has had other targets, once in a step."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._steps: dict[object, int] = {}
        """Kind and site to the step of the latest read; -1 after other targets."""

    def look(self, kind: str, site: Site | None, input: Any, target: Any) -> None:
        """Compare the target of a call with its input, at a sampled step."""
        scene, key = self._scene, (kind, id(site))
        step = self._steps.get(key)
        if step in (-1, scene.sampling.step) or (step is None and len(self._steps) >= _MOST_LINES):
            return
        graph = input.grad_fn is not None
        if not _is_readable(input) or not _is_readable(target) or target.requires_grad or target.numel() < _LEAST:
            return
        with scene.sampling.timed(target):
            target = target.detach()
            how = _how(kind, input.detach(), target)
            how = how if graph or how == "detach" else ""
            how = "" if how in ("argmax", "threshold") and site is not None and is_of_data(site) else how
            varied = bool(how) and bool((target != target.reshape(-1)[0]).any())
        self._steps[key] = scene.sampling.step if how else -1
        labels = int(target.numel())
        scene.tell(TargetsMatched, kind=kind, site=site, how=how, varied=varied, labels=labels, graph=graph)


def _how(kind: str, input: Any, target: Any) -> str:
    if kind in _OF_CLASSES and input.dim() == target.dim() + 1:
        if input.dim() == 2 and len(input) == input.shape[1] == len(target.unique()):
            return ""  # places of pairs in a matrix of scores, which is largest there from the first step on
        return "argmax" if target.shape == input.argmax(1).shape and bool((target == input.argmax(1)).all()) else ""
    if target.shape != input.shape or not (target.is_floating_point() and input.is_floating_point()):
        return ""
    if kind in _REGRESSION:
        if bool((target == input).all()):
            return "detach"
        return "round" if bool((target == input.round()).all()) else ""
    if kind in _DECISIONS:
        return "threshold" if bool((target == (input > _DECISIONS[kind])).all()) else ""
    if kind == "cross_entropy" and input.dim() > 1:
        return "softmax" if _is_close(input.softmax(1), target) else ""
    return "softmax" if kind == "kl_div" and _is_close(input.exp(), target) else ""


def _is_close(one: Any, two: Any) -> bool:
    return bool(((one - two).abs() <= _CLOSE).all())


def _is_readable(tensor: Any) -> bool:
    return not is_transformed(tensor) and has_values(tensor) and tensor.dim() > 0 and 0 < tensor.numel() <= _LARGEST
