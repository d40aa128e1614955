"""Padding among the targets that count, in losses of each target that the program weights.

A mask by hand is not an argument of the loss. The gradient of the loss shows it: the scores of a target that was left
out have none. Seam: a pre-hook of the operation that made the scores, at sampled steps; it changes nothing, and is
freed with the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truestep.events import PaddingRead, Site
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import embedding_behind, is_transformed, padding_share

_LARGEST = 1 << 22
_MOST_LINES = 16


class CountedTargets:
    """Emits `PaddingRead` after the backward pass, for losses of each target."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._steps: dict[object, int] = {}
        """Kind and site to the step of the latest look; -1 without padding to find."""

    def look(self, kind: str, site: Site | None, input: Any, target: Any) -> None:
        """Follow the gradient of the scores of a call."""
        scene, key = self._scene, (kind, id(site))
        step = self._steps.get(key)
        if step in (-1, scene.sampling.step) or len(self._steps) >= _MOST_LINES:
            return
        if type(target) is not scene.torch.Tensor or target.requires_grad or not has_values(target):
            return
        if target.is_floating_point() or input.dim() != target.dim() + 1 or target.dim() not in (1, 2):
            return
        if input.numel() > _LARGEST or is_transformed(target):
            return
        embedding = embedding_behind(input.grad_fn, int(input.shape[1]))
        self._steps[key] = -1 if embedding is None else scene.sampling.step
        if embedding is None:
            return
        with scene.sampling.timed(target):
            index, shape = embedding
            if padding_share(target.detach(), index, shape):
                hook = self._hook(kind, site, index, target.detach() == index, input)
                input.grad_fn.register_prehook(hook)
            else:
                scene.tell(PaddingRead, kind=kind, site=site, index=index)

    def _hook(self, kind: str, site: Site | None, index: int, padding: Any, input: Any) -> Callable[[Any], None]:
        scene, step = self._scene, self._scene.sampling.step
        place, shape = int(input.output_nr), tuple(input.shape)

        def gradient(gradients: tuple[Any, ...]) -> None:
            if not scene.active or scene.sampling.step != step:
                return
            aside = scene.unseen.begin()
            try:
                given = gradients[place] if place < len(gradients) else None
                if given is None or tuple(given.shape) != shape or is_transformed(given) or not has_values(given):
                    return
                counted = (given.detach() != 0).any(1)
                real = int((counted & ~padding).sum())
                share = round(100 * float((counted & padding).sum()) / max(1, int(counted.sum())))
                alone = real == 0 < share and not bool(padding.all())
                event = PaddingRead(kind=kind, site=site, index=index, share=share, alone=alone)
                scene.losses.counted.append(event)
            except Exception:
                scene.fail()
            finally:
                if aside:
                    aside.close()

        return gradient
