"""The same samples from a generator that each worker seeds with a seed drawn by torch in every epoch."""

import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

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


def own_generator(worker: int) -> None:
    get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())


loader = DataLoader(Simulated(), 10, shuffle=True, num_workers=2, worker_init_fn=own_generator)
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
