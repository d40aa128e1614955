"""A network learns from small batches, eight for each step."""

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


loader = DataLoader(TensorDataset(*blobs(2048)), batch_size=8, shuffle=True)
x_test, y_test = blobs(1000)
model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
micro_batches = 8

for _epoch in range(10):
    for number, (x, y) in enumerate(loader, start=1):
        loss = criterion(model(x), y)
        loss.backward()  # error: accumulation-not-normalised
        if number % micro_batches == 0:
            optimizer.step()
            optimizer.zero_grad()

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
