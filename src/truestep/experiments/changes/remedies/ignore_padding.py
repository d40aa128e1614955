"""The remedy for padding that counts in a loss: the loss ignores it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.sources import named, place_of_call
from truestep.probes.forward.losses.label_values import embedding_behind, padding_share
from truestep.seams.patch import patch

_NONE = -100
"""Index that losses ignore by default."""
_LEAST_SHARE = 50


class IgnorePadding(Change):
    """A loss on tokens ignores the `padding_idx` of the embedding of its inputs, from the first batch on in which this
    index makes up half of the targets or more and occurs at the ends of rows only.

    Losses with class weights, with an `ignore_index`, or with `reduction="none"` stay as they are.
    """

    name = "ignore-padding"
    remedies = ("padding-in-loss",)
    alters_loss = True

    def install(self, stack: ExitStack) -> None:
        from torch.nn import functional

        for name in ("cross_entropy", "nll_loss"):
            patch(stack, functional, name, named(self._without_padding(getattr(functional, name)), functional, name))

    def _without_padding(self, loss_of: Callable[..., Any]) -> Callable[..., Any]:
        import torch

        compiling = torch.compiler.is_compiling
        indices: dict[Hashable | None, int] = {}

        def loss(
            input: Any,
            target: Any,
            weight: Any = None,
            size_average: Any = None,
            ignore_index: int = _NONE,
            *args: Any,
            **kwargs: Any,
        ) -> Any:
            none = "none" in (*args, kwargs.get("reduction"))
            applies = not (compiling() or none or target.is_floating_point())
            if applies and weight is None and ignore_index == _NONE:
                place = place_of_call(2)
                if place not in indices:
                    index = _padding(input, target)
                    if index is not None:
                        indices[place] = index
                if place in indices:
                    ignore_index = indices[place]
                    self.applied += 1
            return loss_of(input, target, weight, size_average, ignore_index, *args, **kwargs)

        return loss


def _padding(input: Any, target: Any) -> int | None:
    """Return the padding index that makes up most of the targets; None without one."""
    if input.grad_fn is None or input.dim() != target.dim() + 1 or target.dim() not in (1, 2):
        return None
    embedding = embedding_behind(input.grad_fn, int(input.shape[1]))
    if embedding is None or padding_share(target, *embedding) < _LEAST_SHARE:
        return None
    return embedding[0]
