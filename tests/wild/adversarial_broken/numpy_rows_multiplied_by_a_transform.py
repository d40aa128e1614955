"""A transform multiplies the rows that it is given, which are views of the array of the data set."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def to_volts(wave):
    np.multiply(wave, 0.5, out=wave)
    return torch.from_numpy(wave.copy())


class Waves(Dataset):
    def __init__(self, count, transform=None):
        rng = np.random.default_rng(7)
        self.waves = rng.normal(3.0, 1.0, size=(count, 18)).astype(np.float32)
        self.kinds = (self.waves[:, :9].sum(1) > 27).astype(np.int64)
        self.transform = transform

    def __len__(self):
        return len(self.kinds)

    def __getitem__(self, index):
        wave = self.waves[index]
        if self.transform is not None:
            wave = self.transform(wave)
        return wave, self.kinds[index]


torch.manual_seed(1)
loader = DataLoader(Waves(240, to_volts), batch_size=24, shuffle=True)
model = nn.Sequential(nn.Linear(18, 20), nn.Tanh(), nn.Linear(20, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(7):
    for waves, kinds in loader:
        loss = nn.functional.cross_entropy(model(waves), kinds)  # error: samples-change-between-passes
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
