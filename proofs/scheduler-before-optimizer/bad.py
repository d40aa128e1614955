"""A classifier trains with a learning rate that falls after every epoch."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(40, 8)


def blobs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    blob = torch.randint(0, 40, (n,))
    return centers[blob] + 0.3 * torch.randn(n, 8), blob % 5


loader = DataLoader(TensorDataset(*blobs(1024)), batch_size=32, shuffle=True)
x_test, y_test = blobs(1000)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.3)

for _epoch in range(5):
    scheduler.step()  # error: scheduler-before-optimizer
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    print(f"result: {criterion(model(x_test), y_test).item():.4f}")
