"""A schedule without a step, an optimizer for each batch, a copy of the best weights that is not loaded; no DataLoader."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(256, 8), torch.randint(3, (256,))
x[torch.arange(256), y] += 2.0


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        self.decay = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 5)  # error: scheduler-never-stepped
        self.best, self.kept = 1e9, None

    def fit(self):
        for _ in range(5):
            for rows in torch.randperm(256).split(32):
                self.optimizer.zero_grad()
                loss = nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                loss.backward()
                self.optimizer.step()
            if loss.item() < self.best:
                self.best = loss.item()
                self.kept = {k: v.clone() for k, v in self.model.state_dict().items()}  # error: state-not-loaded


def tune(model):
    for rows in torch.randperm(256).split(32):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)  # error: optimizer-rebuilt
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
Trainer(network).fit()
tune(network)
still = torch.optim.Adam(network.parameters(), lr=0.01 // 1)  # error: learning-rate-dead
for _ in range(12):
    still.zero_grad()
    nn.functional.cross_entropy(network(x), y).backward()
    still.step()
