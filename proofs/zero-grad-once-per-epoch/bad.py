"""A small network learns to separate two moons, with plain SGD."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def moons(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.randint(0, 2, (n,))
    angle = torch.rand(n) * torch.pi
    sign = 1 - 2 * label
    points = torch.stack([sign * angle.cos() + label - 0.5, sign * angle.sin() + label / 2 - 0.25], dim=1)
    return points + 0.12 * torch.randn(n, 2), label


loader = DataLoader(TensorDataset(*moons(1024)), batch_size=32, shuffle=True)
x_test, y_test = moons(1000)
model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(12):
    total = 0.0
    optimizer.zero_grad()
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()  # error: zero-grad-once-per-epoch
        total += loss.item()
    print(f"epoch {epoch}: training loss {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
