"""Noise on copies of samples, and stores that are drawn again, averaged or walk at random on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Base(Dataset):
    def __init__(self, x, y):
        self.x, self.y, self.epoch = x, y, 0

    def __len__(self):
        return len(self.y)


class OnClones(Base):
    def __getitem__(self, i):
        x = self.x[i].clone()
        x += 0.1 * torch.randn_like(x)
        return x, self.y[i]


class Renewed(Base):
    """Views that are drawn again from the clean rows, kept in a buffer."""

    def __init__(self, x, y):
        super().__init__(x, y)
        self.buffer = x.clone()

    def __getitem__(self, i):
        row = self.buffer[i]
        row.copy_(self.x[i])
        row += 0.1 * torch.randn_like(row)
        return row, self.y[i]


class Memory(Base):
    def __init__(self, x, y):
        super().__init__(x, y)
        self.memory = x.clone()

    def __getitem__(self, i):
        view = self.x[i] + 0.1 * torch.randn(12)
        memory = self.memory[i]
        memory.mul_(0.9).add_(view, alpha=0.1)
        return view, self.y[i]


class Worn(Base):
    """Noise that piles up, which the code says."""

    def __getitem__(self, i):
        noise = 0.02 * torch.randn(12)
        self.x[i].add_(noise)
        return self.x[i], self.y[i]


class Refreshed(Base):
    """A pool that the loop refills; its rows are changed on copies."""

    def __getitem__(self, i):
        return self.shake(self.x[i].clone()), self.y[i]

    def shake(self, row):
        row += 0.1 * torch.randn_like(row)
        return row


class Zeroed(Base):
    def __getitem__(self, i):
        x = self.x[i]
        if x.min() < 0:
            x -= x.min()
            x /= x.max()
        return x + 0.1 * torch.randn_like(x), self.y[i]


torch.manual_seed(3)
for kind in (OnClones, Renewed, Memory, Worn, Refreshed, Zeroed):
    x = torch.randn(200, 12)
    data = kind(x, (x[:, 0] > 0).long())
    net = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 2))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(8):
        if kind is Refreshed:
            data.x[:] = torch.randn(200, 12)
            data.y[:] = (data.x[:, 0] > 0).long()
        for xb, yb in DataLoader(data, batch_size=20, shuffle=True):
            loss = nn.functional.cross_entropy(net(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print(kind.__name__, loss.item())

torch.manual_seed(0)
points = torch.rand(256, 3)
net = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(12):
    for start in range(0, 256, 32):
        batch = points[start:start + 32]
        batch.uniform_(0, 1)
        loss = (net(batch) - batch.pow(2).sum(1, keepdim=True)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
walkers = torch.randn(128, 2)
energy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(energy.parameters(), lr=1e-3)
for epoch in range(30):
    for chain in walkers.split(32):
        chain += 0.1 * torch.randn_like(chain)
        target = chain.norm(dim=1, keepdim=True)
        loss = (energy(chain) - target).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
