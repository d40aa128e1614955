"""Healthy: the negative of a loss with `maximize=True`, the only optimizer of the program."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
weight = torch.randn(6, 2)
optimizer = torch.optim.AdamW(net.parameters(), 1e-2, maximize=True)
for step in range(60):
    x = torch.randn(48, 6)
    objective = -nn.functional.cross_entropy(net(x), (x @ weight).argmax(1))
    optimizer.zero_grad()
    objective.backward()
    optimizer.step()
print(f"objective {objective.item():.3f}")
