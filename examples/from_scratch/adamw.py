"""AdamW: Adam with decoupled weight decay."""

import torch
from adam import Adam


class AdamW(Adam):
    """Shrink the weights a little before each step of Adam.

        p <- p - lr * weight_decay * p
        p <- p - lr * m^ / (sqrt(v^) + eps)

    Decay that is added to the gradient instead (L2) is divided by sqrt(v^) as well: weights with large gradients would
    hardly decay at all.

    Args:
        parameters: to train.
        lr: learning rate, above 0.
        weight_decay: at least 0.
        **options: those of `Adam`.

    Source: Loshchilov and Hutter, Decoupled weight decay regularization (arXiv:1711.05101), algorithm 2.

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> w.grad = torch.tensor([0.0])
    >>> AdamW([w], lr=0.1, weight_decay=0.5).step()
    >>> w
    tensor([0.9500], requires_grad=True)
    """

    def __init__(self, parameters, lr=1e-3, weight_decay=1e-2, **options):
        super().__init__(parameters, lr, **options)
        self.weight_decay = weight_decay

    @torch.no_grad()
    def step(self):
        for p in self.parameters:
            if p.grad is not None:
                p *= 1 - self.lr * self.weight_decay
        super().step()
