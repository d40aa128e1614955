"""Trainings that begin with one seed: of several rates, of folds, of noisy labels, and one that is to be the same as before."""

import statistics

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import KFold
from torch import nn

wine = load_wine()
x = torch.tensor((wine.data - wine.data.mean(0)) / wine.data.std(0), dtype=torch.float32)
y = torch.tensor(wine.target)


def run(rows, lr=0.05, labels=y):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(13, 12), nn.ReLU(), nn.Linear(12, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(6):
        for part in rows[torch.randperm(len(rows))].split(16):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[part]), labels[part]).backward()
            optimizer.step()
    return model.eval()


def accuracy(model, rows):
    with torch.no_grad():
        return (model(x[rows]).argmax(1) == y[rows]).float().mean().item()


every = torch.arange(len(x))
by_rate = [accuracy(run(every, lr), every) for lr in (0.01, 0.03, 0.1)]
folds = []
for train, held_out in KFold(4, shuffle=True, random_state=0).split(x.numpy()):
    folds.append(accuracy(run(torch.tensor(train)), torch.tensor(held_out)))
print(f"folds: {statistics.mean(folds):.3f} +- {statistics.stdev(folds):.3f}; rates: {by_rate}")

noise, generator = [], torch.Generator().manual_seed(1)
for trial in range(4):
    noisy = torch.where(torch.rand(len(y), generator=generator) < 0.2, torch.randint(0, 3, y.shape, generator=generator), y)
    noise.append(accuracy(run(every, labels=noisy), every))
print(f"with noisy labels: {statistics.mean(noise):.3f} +- {statistics.stdev(noise):.3f}")
again = [run(every)[0].weight.sum().item() for _ in range(3)]
print(f"the same each time: {max(again) - min(again)}")
