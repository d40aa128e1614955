"""FixMatch: labelled and unlabelled loaders zipped, confident pseudo-labels from weak views, strong views trained, EMA model evaluated."""
from copy import deepcopy
from itertools import cycle

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class ModelEMA:
    def __init__(self, model, decay=0.95):
        self.ema, self.decay = deepcopy(model), decay
        self.ema.eval()
        self.ema.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        current = model.state_dict()
        for key, value in self.ema.state_dict().items():
            if value.dtype.is_floating_point:
                value.mul_(self.decay).add_(current[key], alpha=1 - self.decay)
            else:
                value.copy_(current[key])


def weak(x):
    return x + 0.05 * torch.randn_like(x)


def strong(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.15 * torch.randn_like(x)


class FixMatch:
    def __init__(self, threshold=0.9, weight=1.0):
        self.model = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
        self.average = ModelEMA(self.model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4)
        self.threshold, self.weight = threshold, weight

    def train_epoch(self, labelled, unlabelled):
        self.model.train()
        used = seen = 0
        for (x, y), (u,) in zip(cycle(labelled), unlabelled):
            logits = self.model(torch.cat([weak(x), weak(u), strong(u)]))
            on_labelled = logits[:len(x)]
            on_weak, on_strong = logits[len(x):].chunk(2)
            supervised = F.cross_entropy(on_labelled, y)
            confidence, pseudo = F.softmax(on_weak.detach(), dim=1).max(1)
            mask = (confidence >= self.threshold).float()
            consistency = (F.cross_entropy(on_strong, pseudo, reduction="none") * mask).mean()
            loss = supervised + self.weight * consistency
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.average.update(self.model)
            used, seen = used + mask.sum().item(), seen + len(mask)
        return supervised.item(), consistency.item(), used / seen

    @torch.no_grad()
    def test(self, x, y):
        return (self.average.ema(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
bunch = load_digits()
order = torch.randperm(len(bunch.target))
x, y = torch.tensor(bunch.data, dtype=torch.float32)[order] / 16, torch.tensor(bunch.target)[order]
labelled = DataLoader(TensorDataset(x[:60], y[:60]), batch_size=20, shuffle=True)
unlabelled = DataLoader(TensorDataset(x[60:1200]), batch_size=95, shuffle=True)
trainer = FixMatch()
for epoch in range(12):
    supervised, consistency, share = trainer.train_epoch(labelled, unlabelled)
    if epoch % 4 == 3:
        print(f"epoch {epoch} supervised {supervised:.3f} consistency {consistency:.3f} pseudo-labels {share:.2f} test {trainer.test(x[1200:], y[1200:]):.3f}")
