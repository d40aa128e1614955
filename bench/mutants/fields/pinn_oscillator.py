"""Physics-informed network for a damped oscillator x'' + 2 d x' + w^2 x = 0."""

import math

import torch
from torch import nn

DAMPING, OMEGA, T_END = 0.3, 2.0, 4.0


def exact(t):
    w = math.sqrt(OMEGA**2 - DAMPING**2)
    return torch.exp(-DAMPING * t) * (torch.cos(w * t) + DAMPING / w * torch.sin(w * t))


class Solution(nn.Module):
    """The network sees the time scaled to [-1, 1]."""

    def __init__(self, width=24):
        super().__init__()
        self.hidden = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.last = nn.Linear(width, 1)

    def forward(self, t):
        return self.last(self.hidden(2 * t / T_END - 1))


def derivative(y, t):
    return torch.autograd.grad(y.sum(), t, create_graph=True)[0]


def residual(model, t):
    x = model(t)
    dx = derivative(x, t)
    ddx = derivative(dx, t)
    return ddx + 2 * DAMPING * dx + OMEGA**2 * x


def initial_terms(model):
    t0 = torch.zeros(1, 1, requires_grad=True)
    x0 = model(t0)
    v0 = derivative(x0, t0)
    return (x0 - 1).pow(2).mean() + v0.pow(2).mean()


def main():
    torch.manual_seed(2)
    model = Solution()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(1, 601):
        t = (torch.rand(48, 1) * T_END).requires_grad_(True)
        physics = residual(model, t).pow(2).mean()
        start = initial_terms(model)
        loss = physics + 20 * start
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 150 == 0:
            print(f"step {step} physics {physics.item():.5f} start {start.item():.6f}")
    grid = torch.linspace(0, T_END, 200).unsqueeze(1)
    model.eval()
    with torch.no_grad():
        error = (model(grid) - exact(grid)).pow(2).mean().sqrt()
    print(f"root mean square error against the exact solution {error.item():.4f}")


if __name__ == "__main__":
    main()
