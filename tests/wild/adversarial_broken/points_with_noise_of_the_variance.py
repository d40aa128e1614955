"""A diffusion of points without a module: each batch has shares of noise, and stand in the expression."""

import torch

torch.manual_seed(5)
w1 = (torch.randn(3, 64) * 0.5).requires_grad_()
w2 = (torch.randn(64, 2) * 0.1).requires_grad_()
bias = torch.zeros(64, requires_grad=True)
optimizer = torch.optim.Adam([w1, w2, bias], lr=1e-2)


def denoise(x, level):
    return torch.tanh(torch.cat([x, level], 1) @ w1 + bias) @ w2


def batch(size):
    angle = torch.rand(size, 1) * 6.2832
    return torch.cat([angle.cos(), angle.sin()], 1)


for step in range(120):
    points, level = batch(64), torch.rand(64, 1)
    noise = torch.randn(64, 2)
    guess = denoise((1 - level).sqrt() * points + level * noise, level)  # error: noise-scaled-by-variance
    loss = ((guess - noise) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss:.3f}")
