"""States of a recurrent network that padding changes: a loss may use them or not, which its gradient shows.

An encoder returns its states beside its results for each position. A program that drops them is right without packing,
and so is one that uses only those of samples without padding. Zeros in a series can be values; the padding of an
embedding is none.
Seam: a pre-hook of the operation that made the state, at sampled steps; it changes nothing and is freed with the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truestep.events import PaddingCompared
from truestep.probes.context.scene import Scene
from truestep.probes.context.values import has_values, saved
from truestep.probes.forward.losses.label_values import is_transformed, nodes

_DEEP = 4
_MOST_RESULTS = 16
_TOKENS = 2
"""Dimensions of a batch of tokens."""


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
    padded = _padded(state.grad_fn, int(state.shape[1]))
    if padded is not None and bool(padded.any()):
        state.grad_fn.register_prehook(_hook(scene, event, int(state.output_nr), tuple(state.shape), padded))


def _padded(node: Any, samples: int) -> Any:
    """Return True for each sample with padding of the embedding that a state was computed from; None without one."""
    for current in nodes(node):
        if current.name() == "EmbeddingBackward0":
            index, tokens = int(current._saved_padding_idx), saved(current, "indices")
            if 0 <= index < int(current._saved_weight_sym_argsize_0) and tokens is not None and tokens.dim() == _TOKENS:
                rows = tokens if tokens.shape[0] == samples else tokens.t()
                return (rows == index).any(1) if rows.shape[0] == samples else None
    return None


def _hook(
    scene: Scene, event: PaddingCompared, place: int, shape: tuple[int, ...], padded: Any
) -> Callable[[Any], None]:
    step = scene.sampling.step
    emitted: list[bool] = []

    def gradient(gradients: tuple[Any, ...]) -> None:
        if not scene.active or scene.sampling.step != step or emitted:
            return
        aside = scene.unseen.begin()
        try:
            given = gradients[place] if place < len(gradients) else None
            if given is None or tuple(given.shape) != shape or is_transformed(given) or not has_values(given):
                return
            if bool((given.detach()[:, padded] != 0).any()):
                emitted.append(True)
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
