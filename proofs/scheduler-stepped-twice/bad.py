"""A classifier trains with a learning rate that falls from epoch to epoch."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(40, 8)


def blobs(n: int) -> TensorDataset:
    blob = torch.randint(0, 40, (n,))
    return TensorDataset(centers[blob] + 0.3 * torch.randn(n, 8), blob % 8)


train_loader = DataLoader(blobs(1024), batch_size=32, shuffle=True)
test_loader = DataLoader(blobs(1000), batch_size=250)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.75)

for _epoch in range(12):
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        right = sum((model(x).argmax(dim=1) == y).sum().item() for x, y in test_loader)
    scheduler.step()  # error: scheduler-stepped-twice

print(f"result: {right / 1000:.4f}")
