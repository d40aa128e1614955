"""The remedy for probabilities in a loss that expects logits: convert them to logits."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from truestep.experiments.changes.parts.change import Change
from truestep.seams.patch import patch


class UndoActivation(Change):
    """Cross entropy gets the logarithm of a softmax, binary cross entropy with logits the logit of a sigmoid.

    Both give the loss that the script would have without the activation: softmax(log p) is p. Values count as
    probabilities if they lie between 0 and 1 and, for cross entropy, sum to 1.
    """

    name = "undo-activation"
    remedies = ("softmax-before-cross-entropy", "sigmoid-before-bce-with-logits")
    alters_loss = True

    def install(self, stack: ExitStack) -> None:
        import torch
        from torch.nn import functional

        def cross_entropy(input: Any, *args: Any, **kwargs: Any) -> Any:
            classes = 1 if input.dim() > 1 else 0
            if _lies_between(input) and torch.allclose(
                input.sum(classes), torch.ones_like(input.sum(classes)), atol=1e-3
            ):
                self.applied += 1
                input = input.clamp_min(torch.finfo(input.dtype).tiny).log()
            return entropy(input, *args, **kwargs)

        def binary_cross_entropy_with_logits(input: Any, *args: Any, **kwargs: Any) -> Any:
            if _lies_between(input):
                self.applied += 1
                input = torch.logit(input, eps=1e-7)
            return binary(input, *args, **kwargs)

        entropy = patch(stack, functional, "cross_entropy", cross_entropy)
        binary = patch(stack, functional, "binary_cross_entropy_with_logits", binary_cross_entropy_with_logits)


def _lies_between(input: Any) -> bool:
    return bool(input.is_floating_point() and input.numel() and (input.min() >= 0) & (input.max() <= 1))
