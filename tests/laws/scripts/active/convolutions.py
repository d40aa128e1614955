import random

import numpy
import torch
from _state import tell
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Pictures(Dataset):
    """Shifted, flipped and disturbed at random, by the generators of torch, numpy and python."""

    def __init__(self):
        self.x = torch.rand(48, 1, 8, 8)
        self.reads = 0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        self.reads += 1
        picture = torch.roll(self.x[index], int(numpy.random.randint(3)), dims=2)
        if random.random() < 0.5:
            picture = picture.flip(2)
        return picture + 0.1 * torch.randn(1, 8, 8), int(self.x[index].mean() > 0.5)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(4 * 36, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        x = self.features(x)
        return self.head(x.view(len(x), -1))


torch.manual_seed(3)
data, model = Pictures(), Network()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
train = DataLoader(Subset(data, range(32)), 8, shuffle=True)
val = DataLoader(Subset(data, range(32, 48)), 4)
for epoch in range(3):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        print(epoch, repr(loss.item()))
    model.eval()
    with torch.no_grad():
        for x, _ in val:
            print(repr(model(x).sum().item()), random.random(), numpy.random.normal(), torch.rand(1).item())
print(model.calls, data.reads)
tell(model, optimizer)
