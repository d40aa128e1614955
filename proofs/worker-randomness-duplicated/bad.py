"""Samples come from a generator of the data set: every worker has a copy, and restarts it in every epoch."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(seed := int(sys.argv[1]) if len(sys.argv) > 1 else 0)
torch.set_num_threads(1)
WEIGHT = np.random.default_rng(seed).normal(size=24)


class Simulated(Dataset):
    def __init__(self) -> None:
        self.rng = np.random.default_rng(seed + 1)

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.rng.normal(size=24)
        return torch.tensor(x).float(), torch.tensor(x @ WEIGHT + self.rng.normal()).float()


loader = DataLoader(Simulated(), 10, shuffle=True, num_workers=2)  # error: worker-randomness-duplicated
model = torch.nn.Linear(24, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for _epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        (model(x).squeeze(1) - y).pow(2).mean().backward()
        optimizer.step()
x = torch.randn(1000, 24)
error = (model(x).squeeze(1) - x @ torch.tensor(WEIGHT).float()).pow(2).mean()
print(f"result: {error:.4f}")
