"""A small network learns to sort points into four blobs per class."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(20, 8)


def blobs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    blob = torch.randint(0, 20, (n,))
    return centers[blob] + 0.5 * torch.randn(n, 8), blob % 5


loader = DataLoader(TensorDataset(*blobs(1024)), batch_size=32, shuffle=True)
x_test, y_test = blobs(1000)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

for epoch in range(10):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.zero_grad()  # error: zero-grad-before-step
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: training loss {total / len(loader):.4f}")

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
