"""Two tasks share a body, in half precision with a scaled loss for each."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
centers = torch.randn(20, 8)


def blobs(n: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    blob = torch.randint(0, 20, (n,))
    return centers[blob] + 0.4 * torch.randn(n, 8), blob % 5, blob % 4


loader = DataLoader(TensorDataset(*blobs(1024)), batch_size=32, shuffle=True)
x_test, _, y_test = blobs(1000)
body, head_a, head_b = nn.Sequential(nn.Linear(8, 64), nn.ReLU()), nn.Linear(64, 5), nn.Linear(64, 4)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(nn.ModuleList([body, head_a, head_b]).parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for _epoch in range(8):
    for x, a, b in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss_a, loss_b = criterion(head_a(body(x)), a), criterion(head_b(body(x)), b)
        scaler.scale(loss_a).backward()
        loss_b.backward()  # error: scaler-misused
        scaler.step(optimizer)
        scaler.update()

with torch.no_grad():
    print(f"result: {(head_b(body(x_test)).argmax(dim=1) == y_test).float().mean().item():.4f}")
