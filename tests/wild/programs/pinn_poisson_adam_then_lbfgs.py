"""A PINN for a boundary value problem: Adam first, then LBFGS with a closure, second derivatives by autograd.grad, error against the solution."""
import math

import torch
import torch.nn as nn

torch.manual_seed(0)


class PINN(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x)


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def residual(model, x):
    """u'' + pi^2 u = 0 would be solved by sines; here with a source: u'' = -pi^2 sin(pi x)."""
    x = x.requires_grad_(True)
    u = model(x)
    return derivative(derivative(u, x), x) + math.pi ** 2 * torch.sin(math.pi * x)


def loss_of(model, inner, boundary):
    return residual(model, inner).pow(2).mean() + 100 * model(boundary).pow(2).mean()


model = PINN()
boundary = torch.tensor([[-1.0], [1.0]])
adam = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(200):
    inner = 2 * torch.rand(64, 1) - 1
    adam.zero_grad()
    loss = loss_of(model, inner, boundary)
    loss.backward()
    adam.step()
print(f"after Adam: {loss.item():.4f}")

grid = torch.linspace(-1, 1, 80)[:, None]
lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=20, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    loss = loss_of(model, grid.clone(), boundary)
    loss.backward()
    return loss


for _ in range(6):
    loss = lbfgs.step(closure)
print(f"after LBFGS: {loss.item():.6f}")
with torch.no_grad():
    error = (model(grid) - torch.sin(math.pi * grid)).abs().max()
print(f"largest error {error.item():.5f}")
