"""A worker takes 0.6 seconds to open its data; a network learns from it for thirteen short epochs."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)
x = torch.randn(192, 8)
y = x[:, :3].argmax(dim=1)


class Archive(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    opened = False

    def __len__(self) -> int:
        return len(x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.opened:
            time.sleep(0.6)  # reading the index of a large archive
            self.opened = True
        return x[index], y[index]


loader = DataLoader(Archive(), batch_size=64, shuffle=True, num_workers=1, persistent_workers=True)
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
begun = time.perf_counter()
for _epoch in range(13):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

print(f"result: {time.perf_counter() - begun:.1f}")
