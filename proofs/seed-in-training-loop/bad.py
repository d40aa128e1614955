"""A small network learns a function of two variables from new points in each epoch."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.set_num_threads(1)


def wave(points: torch.Tensor) -> torch.Tensor:
    return torch.sin(2 * points[:, :1]) * torch.cos(2 * points[:, 1:])


torch.manual_seed(seed)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for _epoch in range(600):
    torch.manual_seed(seed)  # error: seed-in-training-loop
    for _batch in range(2):
        points = 3 * torch.rand(16, 2) - 1.5
        loss = (model(points) - wave(points)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

grid = torch.cartesian_prod(torch.linspace(-1.5, 1.5, 50), torch.linspace(-1.5, 1.5, 50))
with torch.no_grad():
    error = (model(grid) - wave(grid)).square().mean().item()
print(f"result: {error:.4f}")
