"""An endless stream of random samples with a generator made in __init__, so that all workers draw the same."""
import itertools

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Waves(IterableDataset):
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __iter__(self):
        while True:
            frequency = self.rng.uniform(1, 3)
            yield np.sin(frequency * np.linspace(0, 6, 20)).astype(np.float32), np.float32(frequency)


if __name__ == "__main__":
    torch.manual_seed(0)
    stream = DataLoader(Waves(0), batch_size=8, num_workers=2)  # error: iterable-repeated-by-workers
    net = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for signal, frequency in itertools.islice(stream, 12):
        loss = nn.functional.mse_loss(net(signal).squeeze(1), frequency)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
