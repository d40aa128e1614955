"""A request takes ten milliseconds; a small network learns from the samples for seven epochs."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
x = torch.randn(128, 8)
y = x[:, :3].argmax(dim=1)


class Remote(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    def __len__(self) -> int:
        return len(x)

    def __getitems__(self, indices: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        time.sleep(0.01)  # a request to another machine
        return [(x[index], y[index]) for index in indices]


loader = DataLoader(Remote(), batch_size=16, shuffle=True)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
begun = time.perf_counter()
for _epoch in range(7):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

print(f"result: {time.perf_counter() - begun:.1f}")
