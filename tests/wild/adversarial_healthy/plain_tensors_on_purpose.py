"""Tensors in plain attributes that are no weights: Fourier features, class weights, a hidden state, points with derivatives, a held factor."""
import torch
from torch import nn


class Field(nn.Module):
    """The solution of u' = cos(x) as a network of random features, with its points."""

    def __init__(self):
        super().__init__()
        self.B = 2 * torch.randn(1, 16)
        self.points = torch.rand(64, 1, requires_grad=True)
        self.body = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        z = x @ self.B
        return self.body(torch.cat([z.sin(), z.cos()], 1))

    def residual(self):
        u = self(self.points)
        (slope,) = torch.autograd.grad(u.sum(), self.points, create_graph=True)
        return (slope - self.points.cos()).square().mean() + self(torch.zeros(1, 1)).square().mean()


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.tensor([1.0, 2.0, 0.5])
        self.memory = torch.zeros(1, 12)
        self.mix = torch.randn(12, 12).mul_(0.1).requires_grad_(True)
        self.layer = nn.Linear(12, 3)

    def forward(self, x):
        self.memory = 0.9 * self.memory + 0.1 * x.mean(0, keepdim=True).detach()
        return self.layer(x + (x - self.memory) @ self.mix)

    def loss(self, x, y):
        return nn.functional.cross_entropy(self(x), y, weight=self.weight)


torch.manual_seed(0)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=3e-3)
for _ in range(60):
    optimizer.zero_grad()
    loss = field.residual()
    loss.backward()
    optimizer.step()
print(f"residual {loss.item():.4f}")

net = Weighted()
optimizer = torch.optim.Adam([*net.parameters(), net.mix], lr=1e-2)
for _ in range(60):
    x = torch.randn(32, 12)
    optimizer.zero_grad()
    loss = net.loss(x, x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
