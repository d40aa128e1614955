"""Regress a sum of two effects with a network of two branches."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


class TwoBranches(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep, self.wide = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16)), nn.Linear(6, 16)
        self.head = nn.Linear(32, 1)

    def forward(self, x):
        branches = [
            self.deep(x[:, :6]),
            self.wide(x[:, 6:]),  # error: parameters-without-effect
        ]
        return self.head(torch.cat([branches[0], branches[0]], dim=1))


x = torch.randn(2000, 12)
y = (x[:, :6] @ torch.randn(6, 1)).relu() + x[:, 6:] @ torch.randn(6, 1)
net = TwoBranches()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)

for _step in range(300):
    rows = torch.randint(0, 1500, (64,))
    optimizer.zero_grad()
    nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
    optimizer.step()
with torch.no_grad():
    error = nn.functional.mse_loss(net(x[1500:]), y[1500:]) / y[1500:].var()
print(f"result: {error.item():.4f}")
