"""The remedy for clipping in the wrong place: clip in the same way right before every step."""

from __future__ import annotations

import copy
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.optimizers import parameters_of
from truestep.seams.patch import patch
from truestep.seams.refs import Ref


class ClipFirst(Change):
    """The script's clipping, with its parameters and norm, runs before each step; the script's own call does nothing.

    The norm is known from the script's first call on. An earlier step is then undone and repeated with clipped
    gradients, if these are unchanged: a first step without clipping can decide a whole training.
    """

    name = "clip-first"
    remedies = ("clip-after-step", "clip-before-backward")

    def __init__(self) -> None:
        super().__init__()
        self._clip: Any = None
        """Parameters, norm, arguments and options of the script's latest clipping."""
        self._before: dict[Any, _Before] = {}
        """Optimizers with their state before the steps that came before the first clipping."""

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import utils

        def clip_grad_norm_(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            self._clip = (parameters, max_norm, args, kwargs)
            before, self._before = self._before, {}
            again = [(optimizer, held) for optimizer, held in before.items() if held.can_be_taken_again(optimizer)]
            norm = clip(parameters, float("inf"), *args, **kwargs)
            for optimizer, held in again:
                clip(parameters, max_norm, *args, **kwargs)
                self.applied += 1
                held.take_again(optimizer)
            return norm

        def steps(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self._clip is not None:
                parameters, max_norm, more, options = self._clip
                clip(parameters, max_norm, *more, **options)
                self.applied += 1
            elif len(args) <= 1 and kwargs.get("closure") is None:  # torch gives the optimizer first
                self._before = {optimizer: _Before(optimizer)}  # only the latest step can be repeated

        clip = patch(stack, utils, "clip_grad_norm_", clip_grad_norm_)
        patch(stack, utils.clip_grad, "clip_grad_norm_", clip_grad_norm_)
        seams.step.watch(stack, before=steps)


class _Before:
    """An optimizer and its parameters before a step."""

    def __init__(self, optimizer: Any) -> None:
        self._weights = [p.detach().clone() for p in parameters_of(optimizer)]
        self._gradients = [None if grad is None else (Ref(grad), grad._version) for grad in _gradients(optimizer)]
        self._groups = [{name: value for name, value in g.items() if name != "params"} for g in optimizer.param_groups]
        self._state = {p: copy.deepcopy(held) for p, held in optimizer.state.items()}

    def can_be_taken_again(self, optimizer: Any) -> bool:
        """Return True if the gradients are still those of the step, and only code of torch takes part in it."""
        return (
            self._has_these_gradients(optimizer)
            and getattr(optimizer, "grad_scale", None) is None
            and hasattr(type(optimizer).step, "__wrapped__")
        )

    def take_again(self, optimizer: Any) -> None:
        """Repeat the step from its initial state, without hooks, with the current settings of the groups."""
        import torch

        now = [dict(group) for group in optimizer.param_groups]
        with torch.no_grad():
            for parameter, weights in zip(parameters_of(optimizer), self._weights, strict=True):
                parameter.copy_(weights)
        optimizer.state.clear()
        optimizer.state.update(self._state)
        for group, before in zip(optimizer.param_groups, self._groups, strict=True):
            group.update(before)
        type(optimizer).step.__wrapped__(optimizer)
        for group, after in zip(optimizer.param_groups, now, strict=True):
            group.update(after)

    def _has_these_gradients(self, optimizer: Any) -> bool:
        """Return True if each gradient is still the same tensor with the same values."""
        pairs = zip(self._gradients, _gradients(optimizer), strict=True)
        return all(
            now is None if known is None else now is not None and known[1] == now._version and known[0]() is now
            for known, now in pairs
        )


def _gradients(optimizer: Any) -> list[Any]:
    return [parameter.grad for parameter in parameters_of(optimizer)]
