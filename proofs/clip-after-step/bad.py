"""A deep classifier trains with a large learning rate and clipped gradients."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(30, 8)


def blobs(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    blob = torch.randint(0, 30, (n,))
    return centers[blob] + 0.4 * torch.randn(n, 8), blob % 5


loader = DataLoader(TensorDataset(*blobs(1024)), batch_size=32, shuffle=True)
x_test, y_test = blobs(1000)
layers = [layer for _ in range(4) for layer in (nn.Linear(32, 32), nn.Tanh())]
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), *layers, nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)

for _epoch in range(15):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.2)  # error: clip-after-step

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
