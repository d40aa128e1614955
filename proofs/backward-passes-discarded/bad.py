"""A small network learns to sort points into four blobs per class, in windows of eight small batches."""

import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(20, 8)
MICRO = 8


def blobs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    blob = torch.randint(0, 20, (n,))
    return centers[blob] + 0.5 * torch.randn(n, 8), blob % 5


x_test, y_test = blobs(1000)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for step in range(150):
    total = 0.0
    for _ in range(MICRO):
        optimizer.zero_grad()  # error: backward-passes-discarded
        x, y = blobs(4)
        loss = nn.functional.cross_entropy(model(x), y) / MICRO
        loss.backward()
        total += loss.item()
    optimizer.step()
    if step % 30 == 29:
        print(f"step {step + 1}: training loss {total:.4f}")

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
