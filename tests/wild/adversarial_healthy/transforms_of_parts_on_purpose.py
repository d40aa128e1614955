"""Transforms of parts of a split that no training loses: after it, switched back, of a copy, and the same for both."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, random_split


class Signals(Dataset):
    def __init__(self, transform=None):
        self.x = torch.rand(120, 8)
        self.y, self.transform = (self.x[:, 0] > self.x[:, 1]).long().tolist(), transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = self.x[i]
        return (x if self.transform is None else self.transform(x)), self.y[i]


class Shaken(Dataset):
    def __init__(self, part, amount):
        self.part, self.amount = part, amount

    def __len__(self):
        return len(self.part)

    def __getitem__(self, i):
        x, y = self.part[i]
        return x + self.amount * torch.randn_like(x), y


def shake(x):
    return x + 0.1 * torch.randn_like(x)


def centre(x):
    return x - 0.5


def make():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    return net, torch.optim.Adam(net.parameters(), lr=3e-3)


def train(net, optimizer, loader, before=None):
    for _ in range(2):
        net.train()
        if before is not None:
            before()
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


def after_the_training():
    data = Signals(transform=shake)
    train_set, test_set = random_split(data, [80, 40])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    net, optimizer = make()
    train(net, optimizer, train_loader)
    test_set.dataset.transform = None
    print(accuracy(net, DataLoader(test_set, batch_size=40)), accuracy(net, train_loader))


def of_a_copy():
    data = Signals(transform=shake)
    train_part, val_part = random_split(data, [80, 40])
    val_part = copy.deepcopy(val_part)
    val_part.dataset.transform = None
    net, optimizer = make()
    train(net, optimizer, DataLoader(train_part, batch_size=16, shuffle=True))
    print(accuracy(net, DataLoader(val_part, batch_size=40)))


def same_for_both():
    data = Signals()
    train_half, val_half = random_split(data, [80, 40])
    train_half.dataset.transform = centre
    val_half.dataset.transform = centre
    net, optimizer = make()
    train(net, optimizer, DataLoader(train_half, batch_size=16, shuffle=True))
    print(accuracy(net, DataLoader(val_half, batch_size=40)))


def shaken_by_a_wrapper():
    data = Signals(transform=shake)
    train_rows, val_rows = random_split(data, [80, 40])
    val_rows.dataset.transform = None
    net, optimizer = make()
    train(net, optimizer, DataLoader(Shaken(train_rows, 0.1), batch_size=16, shuffle=True))
    print(accuracy(net, DataLoader(val_rows, batch_size=40)))


def two_data_sets():
    noisy, clean = Signals(transform=shake), Signals(transform=shake)
    clean.x, clean.y = noisy.x, noisy.y
    order = torch.randperm(120).tolist()
    train_rows, val_rows = Subset(noisy, order[:80]), Subset(clean, order[80:])
    val_rows.dataset.transform = None
    net, optimizer = make()
    train(net, optimizer, DataLoader(train_rows, batch_size=16, shuffle=True))
    print(accuracy(net, DataLoader(val_rows, batch_size=40)))


torch.manual_seed(0)
after_the_training()
of_a_copy()
same_for_both()
shaken_by_a_wrapper()
two_data_sets()
