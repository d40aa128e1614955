"""The remedy for logits or probabilities in a loss that expects log-probabilities: convert them."""

from __future__ import annotations

from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any

from truestep import seams
from truestep.experiments.changes.parts.change import Change
from truestep.experiments.changes.parts.sources import named, place_of_call
from truestep.probes.backward.origin import made_by
from truestep.seams.patch import patch

_CLASSES = 1
_LINEAR = ("AddmmBackward0", "MmBackward0", "BmmBackward0", "BaddbmmBackward0", "ConvolutionBackward0")
_PROBABILITIES = ("SoftmaxBackward0", "SigmoidBackward0")
_SCALINGS = ("DivBackward0", "MulBackward0")


class LogProbabilities(Change):
    """`nll_loss` and `kl_div` get the log-softmax of logits, and the logarithm of probabilities.

    Logits are direct outputs of a linear or convolutional layer with values above zero. `nll_loss` is also a part of
    correct expressions, so the first backward pass must show that it is minimized alone: it is fixed from the second
    batch on.
    """

    name = "log-probabilities"
    remedies = ("logits-into-probability-loss",)
    alters_loss = True

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import functional

        compiling = torch.compiler.is_compiling
        self._alone: dict[Hashable | None, str] = {}
        """Kind of input by place of `nll_loss`, for those at which a backward pass began."""
        self._pending: list[tuple[Hashable | None, str]] = []

        def nll_loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if compiling():
                return nll(input, target, *args, **kwargs)
            place = place_of_call(2)
            if place in self._alone:
                input = self._mended(input, self._alone[place])
            elif "none" not in (*args, kwargs.get("reduction")) and input.dim() > 1 and input.shape[_CLASSES] > 1:
                self._pending.append((place, _kind(input)))
            return nll(input, target, *args, **kwargs)

        def kl_div(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if not compiling():
                input = self._mended(input, _kind(input), -1)
            return divergence(input, target, *args, **kwargs)

        seams.backward.watch(stack, before=lambda this: self._confirm(this.roots[0].grad_fn))
        nll = patch(stack, functional, "nll_loss", named(nll_loss, functional, "nll_loss"))
        divergence = patch(stack, functional, "kl_div", named(kl_div, functional, "kl_div"))

    def _confirm(self, root: Any) -> None:
        """Confirm that the losses since the latest backward pass are minimized alone, if this pass begins at them."""
        pending, self._pending = self._pending, []
        name = root.name() if root is not None else ""
        if name.startswith("NllLoss") or (name in _SCALINGS and len(pending) == 1):
            wrong = {place: kind for place, kind in pending if kind}
            if len(wrong) == len({place for place, _ in pending}):
                self._alone.update(wrong)

    def _mended(self, input: Any, kind: str, classes: int = _CLASSES) -> Any:
        import torch

        if not kind:
            return input
        self.applied += 1
        if kind == "logits":
            return torch.log_softmax(input, classes)
        return input.clamp_min(torch.finfo(input.dtype).tiny).log()


def _kind(input: Any) -> str:
    """Return "logits" or "probabilities"; "" for a valid input of a loss on log-probabilities."""
    maker = made_by(input.grad_fn) if input.requires_grad and input.numel() else ""
    values = input.detach()
    if maker in _PROBABILITIES:
        return "probabilities"
    return "logits" if maker in _LINEAR and bool((values > 0).any()) else ""
