"""A cache that is filled once, noise that is added in place, and a memory of slowly moving averages."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    """Prepares each image at its first use."""

    def __init__(self, images, labels):
        self.images, self.labels, self.ready = images, labels, set()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        if index not in self.ready:
            self.images[index] /= 255.0
            self.ready.add(index)
        return self.images[index], self.labels[index]


class Shaken(Cached):
    """Adds a little noise to the stored images, more in each pass."""

    def __getitem__(self, index):
        self.images[index] += 0.01 * torch.randn(36)
        return self.images[index], self.labels[index]


class Averaged(Cached):
    """Moves each stored image towards the latest view of it."""

    def __getitem__(self, index):
        self.images[index] *= 0.9
        self.images[index] += 0.1 * torch.rand(36)
        return self.images[index].clone(), self.labels[index]


torch.manual_seed(2)
for kind, size in ((Cached, 255.0), (Shaken, 1.0), (Averaged, 1.0)):
    data = kind(size * torch.rand(160, 36), torch.randint(0, 3, (160,)))
    model = nn.Sequential(nn.Linear(36, 24), nn.ReLU(), nn.Linear(24, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        for images, labels in DataLoader(data, batch_size=20, shuffle=True):
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(kind.__name__, epoch, loss.item())
