"""Adam."""

import torch


class Adam:
    """Divide an average of the gradients by the root of an average of their squares.

        m <- beta1 m + (1 - beta1) g            v <- beta2 v + (1 - beta2) g^2
        m^ = m / (1 - beta1^t)                  v^ = v / (1 - beta2^t)
        p <- p - lr * m^ / (sqrt(v^) + eps)

    m and v begin at 0 and are too small at first; the second line corrects that. The first step is lr long in every
    direction, however large the gradient is.

    Args:
        parameters: to train.
        lr: learning rate, above 0.
        betas: decay of the two averages per step, in [0, 1).
        eps: keeps the division finite.

    Source: Kingma and Ba, Adam: a method for stochastic optimization (arXiv:1412.6980), algorithm 1.

    >>> w = torch.tensor([1.0, 1.0], requires_grad=True)
    >>> w.grad = torch.tensor([0.001, -1000.0])
    >>> Adam([w], lr=0.1).step()
    >>> w
    tensor([0.9000, 1.1000], requires_grad=True)
    """

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
        self.parameters = list(parameters)
        self.lr = lr
        self.betas = betas
        self.eps = eps
        self.m = [torch.zeros_like(p) for p in self.parameters]
        self.v = [torch.zeros_like(p) for p in self.parameters]
        self.t = [0 for _ in self.parameters]

    @torch.no_grad()
    def step(self):
        beta1, beta2 = self.betas
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            self.t[i] += 1
            m, v, t = self.m[i], self.v[i], self.t[i]
            m.mul_(beta1).add_((1 - beta1) * p.grad)
            v.mul_(beta2).add_((1 - beta2) * p.grad**2)
            m_hat = m / (1 - beta1**t)
            v_hat = v / (1 - beta2**t)
            p -= self.lr * m_hat / (v_hat.sqrt() + self.eps)

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None
