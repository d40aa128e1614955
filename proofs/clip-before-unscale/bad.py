"""A classifier trains in half precision, with a scaled loss and clipped gradients."""

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
    return centers[blob] + 0.4 * torch.randn(n, 8), blob % 5


loader = DataLoader(TensorDataset(*blobs(1024)), batch_size=32, shuffle=True)
x_test, y_test = blobs(1000)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu")

for _epoch in range(8):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = criterion(model(x), y)
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)  # error: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(dim=1) == y_test).float().mean().item():.4f}")
