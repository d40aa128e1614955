"""A data set of wines is standardised as a whole, in a function; two parts of it become loaders."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Wines(Dataset):
    def __init__(self, features, grades):
        self.features = features.astype(np.float32)
        self.grades = grades

    def __len__(self):
        return len(self.grades)

    def __getitem__(self, index):
        return {"features": self.features[index], "grade": int(self.grades[index])}


def load():
    rng = np.random.default_rng(5)
    features = rng.gamma(2.0, 1.5, size=(500, 7)) + np.arange(7)
    grades = (features @ rng.normal(size=7) > 5).astype(np.int64)
    return features, grades


def loaders():
    features, grades = load()
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    order = np.random.default_rng(1).permutation(len(grades))
    train = Wines(features[order[:400]], grades[order[:400]])
    test = Wines(features[order[400:]], grades[order[400:]])
    later = DataLoader(test, batch_size=50)  # error: scaled-with-evaluation-data
    return DataLoader(train, batch_size=40, shuffle=True), later


torch.manual_seed(0)
train_loader, test_loader = loaders()
net = nn.Sequential(nn.Linear(7, 24), nn.Tanh(), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    for batch in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(net(batch["features"]), batch["grade"]).backward()
        optimizer.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for batch in test_loader:
            hits += (net(batch["features"]).argmax(1) == batch["grade"]).sum().item()
    print(epoch, hits / len(test_loader.dataset))
