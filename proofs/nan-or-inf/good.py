"""A small network learns a binary label; the loss is the binary cross entropy."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def rings(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.randint(0, 2, (n, 1)).float()
    angle = 2 * torch.pi * torch.rand(n, 1)
    points = torch.cat([angle.cos(), angle.sin()], dim=1) * (0.5 + label)
    return points + 0.1 * torch.randn(n, 2), label


loader = DataLoader(TensorDataset(*rings(1024)), batch_size=32, shuffle=True)
x_test, y_test = rings(1000)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

for _epoch in range(20):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    print(f"result: {((model(x_test) > 0) == y_test.bool()).float().mean().item():.4f}")
