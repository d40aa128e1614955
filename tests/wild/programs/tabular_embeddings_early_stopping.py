"""Tabular data with categorical embeddings: early stopping on validation, best weights deep-copied and restored, hand-written Huber loss."""
import copy
from dataclasses import dataclass, field

import torch
import torch.nn as nn


@dataclass
class EarlyStopping:
    patience: int = 4
    min_delta: float = 1e-4
    best: float = float("inf")
    bad: int = 0
    state: dict = field(default_factory=dict)

    def update(self, score, model):
        if score < self.best - self.min_delta:
            self.best, self.bad, self.state = score, 0, copy.deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


class TabularNet(nn.Module):
    def __init__(self, cardinalities, numeric, width=32):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(c, min(8, (c + 1) // 2)) for c in cardinalities)
        total = sum(e.embedding_dim for e in self.embeddings) + numeric
        self.normalise = nn.BatchNorm1d(numeric)
        self.mlp = nn.Sequential(nn.Linear(total, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1))

    def forward(self, categories, numbers):
        parts = [e(categories[:, k]) for k, e in enumerate(self.embeddings)]
        return self.mlp(torch.cat([*parts, self.normalise(numbers)], dim=1)).squeeze(1)


def huber(prediction, target, delta=1.0):
    error = (prediction - target).abs()
    return torch.where(error < delta, 0.5 * error ** 2, delta * (error - 0.5 * delta)).mean()


def make_table(n, g):
    shop, day = torch.randint(0, 15, (n,), generator=g), torch.randint(0, 7, (n,), generator=g)
    numbers = torch.randn(n, 3, generator=g) * torch.tensor([1.0, 10.0, 0.1]) + torch.tensor([0.0, 50.0, 1.0])
    base = torch.sin(shop.float()) + 0.5 * (day >= 5).float()
    y = base + 0.3 * numbers[:, 0] + 0.02 * numbers[:, 1] + 0.2 * torch.randn(n, generator=g)
    return torch.stack([shop, day], dim=1), numbers, y


def main():
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    categories, numbers, y = make_table(1200, g)
    train, valid, test = torch.randperm(1200).split([800, 200, 200])
    model, stopping = TabularNet([15, 7], 3), EarlyStopping()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(60):
        model.train()
        for i in train[torch.randperm(len(train))].split(80):
            optimizer.zero_grad()
            huber(model(categories[i], numbers[i]), y[i]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            score = huber(model(categories[valid], numbers[valid]), y[valid]).item()
        if stopping.update(score, model):
            break
    model.load_state_dict(stopping.state)
    model.eval()
    with torch.no_grad():
        final = huber(model(categories[test], numbers[test]), y[test]).item()
    print(f"stopped after {epoch + 1} epochs, best validation {stopping.best:.4f}, test {final:.4f}")


if __name__ == "__main__":
    main()
