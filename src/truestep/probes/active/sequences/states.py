"""States of a recurrent network that padding changes: a loss may use them or not, which its gradient shows.

An encoder returns its states beside its results for each position. A program that drops them is right without packing.
Seam: a pre-hook of the operation that made the state, at sampled steps; it changes nothing and is freed with the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truestep.events import PaddingCompared
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values
from truestep.probes.forward.losses.label_values import is_transformed

_DEEP = 4
_MOST_RESULTS = 16


def follow_state(scene: Scene, event: PaddingCompared, result: Any) -> None:
    """Emit an event on a state at the end of the backward pass, if the state of this call gets a gradient.

    Args:
        scene: the scene.
        event: the comparison, with the number of the state.
        result: result of the program's call, in training.
    """
    found = _floating(result, scene.torch, 0)
    state = found[event.state] if event.state is not None and event.state < len(found) else None
    if state is None or state.grad_fn is None or is_transformed(state) or not has_values(state):
        return
    state.grad_fn.register_prehook(_hook(scene, event, int(state.output_nr), tuple(state.shape)))


def _hook(scene: Scene, event: PaddingCompared, place: int, shape: tuple[int, ...]) -> Callable[[Any], None]:
    step = scene.sampling.step
    told: list[bool] = []

    def gradient(gradients: tuple[Any, ...]) -> None:
        if not scene.active or scene.sampling.step != step or told:
            return
        aside = scene.unseen.begin()
        try:
            given = gradients[place] if place < len(gradients) else None
            if given is None or tuple(given.shape) != shape or is_transformed(given) or not has_values(given):
                return
            if bool((given.detach() != 0).any()):
                told.append(True)
                scene.losses.counted.append(event)
        except Exception:
            scene.fail()
        finally:
            if aside:
                aside.close()

    return gradient


def _floating(value: Any, torch: Any, depth: int) -> list[Any]:
    """Return the floating-point tensors of a result of plain collections, in the order of `trial.results`."""
    if type(value) is torch.Tensor:
        return [value] if value.is_floating_point() and value.numel() else []
    if depth >= _DEEP or type(value) not in (tuple, list, dict):
        return []
    found: list[Any] = []
    for item in (list(value.values()) if type(value) is dict else value)[:_MOST_RESULTS]:
        found += _floating(item, torch, depth + 1)
    return found[:_MOST_RESULTS]
