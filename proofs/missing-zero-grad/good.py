"""A small network learns to separate two spirals."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)


def spirals(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    label = torch.randint(0, 2, (n,))
    turn = torch.rand(n).sqrt() * 2 * torch.pi
    angle = turn + torch.pi * label
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * turn[:, None] / 4
    return points + 0.05 * torch.randn(n, 2), label


loader = DataLoader(TensorDataset(*spirals(1024)), batch_size=32, shuffle=True)
x_test, y_test = spirals(1000)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _epoch in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    accuracy = (model(x_test).argmax(dim=1) == y_test).float().mean().item()
print(f"result: {accuracy:.4f}")
