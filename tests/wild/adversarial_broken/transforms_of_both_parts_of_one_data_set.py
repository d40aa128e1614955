"""Both parts get a transform, but they read one data set: the last assignment is that of both."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Signals(Dataset):
    def __init__(self, x, y):
        self.x, self.y, self.transform = x, y, None

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (x if self.transform is None else self.transform(x)), int(self.y[i])


def shaken(x):
    return (x - 0.5) * 2 + 0.1 * torch.randn_like(x)


def plain(x):
    return (x - 0.5) * 2


class Experiment:
    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        x = torch.rand(300, 12, generator=generator)
        self.full = Signals(x, (x[:, 0] > x[:, 1]).long())
        order = torch.randperm(300, generator=generator).tolist()
        self.train_part = Subset(self.full, order[:200])
        self.val_part = Subset(self.full, order[200:])
        self.train_part.dataset.transform = shaken
        self.val_part.dataset.transform = plain  # error: augmentation-in-evaluation
        self.model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def loader(self, train):
        if train:
            return DataLoader(self.train_part, batch_size=20, shuffle=True)
        return DataLoader(self.val_part, batch_size=50)

    def fit(self, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in self.loader(True):
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(loss.item(), self.accuracy())

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        return sum((self.model(x).argmax(1) == y).sum().item() for x, y in self.loader(False)) / len(self.val_part)


torch.manual_seed(0)
Experiment(1).fit(4)
