"""Mixtures of the samples of a batch: mixup, manifold mixup, cutmix, smoothing by other samples, a permuted second term."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
images = torch.randn(320, 3, 6, 6)
labels = (images.mean((2, 3)) @ torch.randn(3, 5)).argmax(1)
loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
body = nn.Sequential(nn.Conv2d(3, 12, 3), nn.ReLU(), nn.Flatten(), nn.Linear(192, 24), nn.ReLU())
head = nn.Linear(24, 5)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.03)


def mixup(x, y):
    lam, index = 0.8, torch.randperm(len(x))
    out = head(body(lam * x + (1 - lam) * x[index]))
    return (1 - lam) * F.cross_entropy(out, y[index]) + lam * F.cross_entropy(out, y)


def manifold_mixup(x, y):
    lam, index, hidden = 0.6, torch.randperm(len(x)), body(x)
    out = head(lam * hidden + (1 - lam) * hidden[index])
    return (1 - lam) * F.cross_entropy(out, y[index]) + lam * F.cross_entropy(out, y)


def cutmix(x, y):
    index, mixed = torch.randperm(len(x)), x.clone()
    mixed[:, :, 1:4, 2:5] = x[index, :, 1:4, 2:5]
    out = head(body(mixed))
    return F.cross_entropy(out, y[index]) * 0.25 + F.cross_entropy(out, y) * 0.75


def smoothed_by_others(x, y):
    hot = F.one_hot(y, 5).float()
    return F.cross_entropy(head(body(x)), 0.9 * hot + 0.1 * hot.flip(0))


def peer_loss(x, y):
    one, two = torch.randperm(len(x)), torch.randperm(len(x))
    out = head(body(x))
    return F.cross_entropy(out, y) - 0.2 * F.cross_entropy(head(body(x[one])), y[two])


for make in (mixup, manifold_mixup, cutmix, smoothed_by_others, peer_loss):
    for epoch in range(3):
        for x, y in loader:
            loss = make(x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
