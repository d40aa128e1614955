"""Generators of a data set that do no harm: seeded per worker, by the index, used once, or beside rows that repeat."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Own(Dataset):
    """Makes its generator when it is first read in a worker."""

    def __init__(self):
        self.rng = None

    def __len__(self):
        return 48

    def __getitem__(self, index):
        if self.rng is None:
            info = get_worker_info()
            self.rng = np.random.default_rng(None if info is None else info.seed)
        return torch.from_numpy(self.rng.normal(size=3)).float()


class ByIndex(Own):
    def __getitem__(self, index):
        return torch.from_numpy(np.random.default_rng((7, index)).normal(size=3)).float()


class Once(Own):
    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.rows = torch.from_numpy(self.rng.normal(size=(48, 3))).float()

    def __getitem__(self, index):
        return self.rows[index]


class FewRows(Once):
    """Two rows, many times."""

    def __getitem__(self, index):
        return self.rows[index % 2]


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for dataset, size in ((Own(), 8), (ByIndex(), 8), (Once(), 8), (FewRows(), 2)):
        loader = DataLoader(dataset, batch_size=size, shuffle=True, num_workers=2)
        for epoch in range(2):
            for x in loader:
                optimizer.zero_grad()
                loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
                loss.backward()
                optimizer.step()
        print(type(dataset).__name__, loss.item())
