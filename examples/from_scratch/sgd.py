"""Stochastic gradient descent with momentum."""

import torch


class SGD:
    """Move against a running sum of gradients in which old ones fade.

        v <- momentum * v + g
        p <- p - lr * v

    Args:
        parameters: to train.
        lr: learning rate, above 0.
        momentum: decay of the sum per step, in [0, 1); 0 is plain gradient descent.

    Source: Polyak, Some methods of speeding up the convergence of iteration methods (1964); in this form Sutskever et
    al., On the importance of initialization and momentum in deep learning (ICML 2013).

    >>> w = torch.tensor([1.0], requires_grad=True)
    >>> w.grad = torch.tensor([2.0])
    >>> SGD([w], lr=0.1).step()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(self, parameters, lr, momentum=0.0):
        self.parameters = list(parameters)
        self.lr = lr
        self.momentum = momentum
        self.v = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        for p, v in zip(self.parameters, self.v, strict=True):
            if p.grad is not None:
                v.mul_(self.momentum).add_(p.grad)
                p -= self.lr * v

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None
