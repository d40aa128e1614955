"""LBFGS: the closure clears, computes and returns the loss."""

import torch
from torch import nn

u = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.LBFGS(u.parameters(), lr=0.5, max_iter=20, line_search_fn="strong_wolfe")
points = torch.linspace(0, 1, 200).unsqueeze(1).requires_grad_(True)
history: list[float] = []


def residual():
    value = u(points)
    (slope,) = torch.autograd.grad(value, points, torch.ones_like(value), create_graph=True)
    (curve,) = torch.autograd.grad(slope, points, torch.ones_like(slope), create_graph=True)
    return curve + torch.sin(points)


def closure():
    optimizer.zero_grad()  # broken[missing-zero-grad]: pass
    edges = u(torch.tensor([[0.0], [1.0]])).square().mean()
    loss = residual().square().mean() + 10 * edges
    loss.backward()
    return loss


for step in range(100):
    loss = optimizer.step(closure)
    history.append(loss.item())
