"""The head of a network with a fixed first layer learns from readings with glitches."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def signal(n: int, glitches: float) -> tuple[torch.Tensor, torch.Tensor]:
    x = 2 * torch.rand(n, 2) - 1
    y = torch.sin(3 * x[:, :1]) * torch.cos(2 * x[:, 1:])
    return x, y + 20 * torch.randn(n, 1) * (torch.rand(n, 1) < glitches)


loader = DataLoader(TensorDataset(*signal(2048, glitches=0.1)), batch_size=32, shuffle=True)
x_test, y_test = signal(1000, glitches=0.0)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
model[0].requires_grad_(False)
trainable = list(filter(lambda p: p.requires_grad, model.parameters()))
optimizer = torch.optim.SGD(trainable, lr=0.05)
criterion = nn.MSELoss()

for _epoch in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        nn.utils.clip_grad_norm_(trainable, max_norm=1.0)
        optimizer.step()

model.eval()
with torch.no_grad():
    print(f"result: {criterion(model(x_test), y_test).item():.4f}")
