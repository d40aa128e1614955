"""Clipping by the global norm."""

import torch


@torch.no_grad()
def clip_by_global_norm(parameters, max_norm):
    """Shorten the gradients of all parameters together to `max_norm`; return how long they were.

        g <- g * min(1, max_norm / |g|)        |g|: of all gradients as one long vector

    One factor for all: the direction of the step stays. It belongs between backward() and step().

    Source: Pascanu, Mikolov and Bengio, On the difficulty of training recurrent neural networks (arXiv:1211.5063).

    >>> w = torch.zeros(2, requires_grad=True)
    >>> w.grad = torch.tensor([3.0, 4.0])
    >>> clip_by_global_norm([w], max_norm=1.0), w.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.sqrt(sum(((g**2).sum() for g in gradients), start=torch.tensor(0.0)))
    factor = torch.clamp(max_norm / (norm + 1e-6), max=1.0)  # 1e-6: gradients of zero stay zero
    for g in gradients:
        g *= factor
    return norm
