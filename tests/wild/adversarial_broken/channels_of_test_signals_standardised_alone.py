"""Signals of three channels: a class standardises all that it is given, also the signals of the test."""

import torch
from torch import nn


class Signals:
    def __init__(self, waves, kinds):
        centre = waves.mean(dim=(0, 2), keepdim=True)
        self.waves = (waves - centre) / waves.std(dim=(0, 2), keepdim=True)
        self.kinds = kinds


def record(count, drift):
    kinds = torch.randint(0, 3, (count,))
    time = torch.linspace(0, 6, 20)
    waves = torch.sin((kinds[:, None, None] + 1) * time + torch.arange(3.0)[:, None])
    return waves * (1 + drift) + drift + 0.2 * torch.randn(count, 3, 20), kinds


torch.manual_seed(4)
trained_on = Signals(*record(300, 0.0))
held_out = Signals(*record(90, 0.5))  # error: scaled-with-evaluation-data
classifier = nn.Sequential(nn.Conv1d(3, 8, 5), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 3))
optimizer = torch.optim.SGD(classifier.parameters(), lr=0.05, momentum=0.9)


def accuracy(signals):
    classifier.eval()
    with torch.no_grad():
        return (classifier(signals.waves).argmax(dim=1) == signals.kinds).float().mean().item()


for epoch in range(8):
    classifier.train()
    for rows in torch.randperm(300).split(30):
        loss = nn.functional.cross_entropy(classifier(trained_on.waves[rows]), trained_on.kinds[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, accuracy(held_out))
