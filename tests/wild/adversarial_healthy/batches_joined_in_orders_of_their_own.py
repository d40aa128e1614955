"""Collate functions that move some parts of a batch, draw others, or number them, all on purpose."""

import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

random.seed(3)
torch.manual_seed(3)
texts = [torch.randn(int(torch.randint(3, 9, ())), 4) for _ in range(96)]
samples = [(text, other * 2, float(text.sum())) for text, other in zip(texts, texts[40:] + texts[:40])]
POOL = torch.randn(64, 4)


def whole_samples(batch):
    batch = sorted(batch, key=lambda sample: len(sample[0]))
    return pad_sequence([text for text, *_ in batch], True), torch.tensor([value for *_, value in batch])


def negatives(batch):
    x = torch.stack([text.mean(0) for text, *_ in batch])
    y = torch.stack([other.mean(0) for _, other, _ in batch])
    return x, y, y.roll(1, 0)


def drawn(batch):
    x = torch.stack([text.mean(0) for text, *_ in batch])
    times, picked = torch.rand(len(x), 1), torch.tensor([random.randrange(64) for _ in batch])
    return x, POOL[picked], times


def mixed(batch):
    x, y = torch.stack([text.mean(0) for text, *_ in batch]), torch.tensor([value for *_, value in batch])
    order = torch.randperm(len(x))
    return 0.7 * x + 0.3 * x[order], y, y[order]


def numbered(batch):
    x = torch.stack([text.mean(0) for text, *_ in batch])
    return x, torch.arange(len(x)), torch.tensor([value for *_, value in batch])


def unpaired(batch):
    ones = sorted((text for text, *_ in batch), key=len)
    others = sorted((other for _, other, _ in batch), key=lambda other: -float(other.sum()))
    return pad_sequence(ones, True).mean(1), pad_sequence(others, True).mean(1)


def ordered_targets(batch):
    x = torch.stack([text.mean(0) for text, *_ in batch])
    return x, torch.tensor(sorted(value for *_, value in batch))


def train(join, loss_of):
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        for parts in DataLoader(samples, batch_size=16, shuffle=True, collate_fn=join):
            optimizer.zero_grad()
            loss_of(model, *parts).backward()
            optimizer.step()


train(whole_samples, lambda model, x, y: F.mse_loss(model(x.mean(1)).sum(1), y))
train(negatives, lambda model, x, y, z: F.triplet_margin_loss(model(x), y, z))
train(drawn, lambda model, x, z, t: F.mse_loss(model((1 - t) * x + t * z), z - x))
train(mixed, lambda model, x, y, z: F.mse_loss(model(x).sum(1), 0.7 * y + 0.3 * z))
train(mixed, lambda model, x, y, z: 0.7 * F.mse_loss(model(x).sum(1), y) + 0.3 * F.mse_loss(model(x).sum(1), z))
train(numbered, lambda model, x, at, y: F.mse_loss(model(x)[at].sum(1), y) + F.cross_entropy(model(x) @ x.t(), at))
train(unpaired, lambda model, x, y: (model(x).mean(0) - y.mean(0)).square().sum() + (model(x).std(0) - y.std(0)).norm())
train(ordered_targets, lambda model, x, y: F.mse_loss(model(x).sum(1).sort().values, y))
