"""A small classifier learns five classes of a function that is not linear."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

mixing = torch.randn(20, 5)


def examples(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(n, 20)
    return x, (x @ mixing + torch.sin(3 * x) @ mixing.flip(0)).argmax(1)


loader = DataLoader(TensorDataset(*examples(4096)), batch_size=64, shuffle=True)
x_test, y_test = examples(2000)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _epoch in range(8):
    for x, y in loader:
        optimizer.zero_grad()
        logits = model(x)
        nn.functional.cross_entropy(logits, y).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    print(f"result: {(model(x_test).argmax(1) == y_test).float().mean().item():.4f}")
