"""A trainer adds up the mean loss of each batch, and divides by the samples that it has counted."""

import torch
from torch import nn

torch.manual_seed(2)
x = torch.randn(700, 6)
y = (x[:, :3] ** 2).sum(1, keepdim=True)


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
        self.loss = nn.SmoothL1Loss()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=5e-3)

    def fit(self, epochs):
        for _ in range(epochs):
            self.net.train()
            for rows in torch.randperm(500).split(50):
                self.optimizer.zero_grad()
                self.loss(self.net(x[rows]), y[rows]).backward()
                self.optimizer.step()
            print(f"validation {self.validate():.5f}")

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        self.total, self.seen = 0.0, 0
        for inputs, targets in zip(x[500:].split(40), y[500:].split(40)):
            self.total += self.loss(self.net(inputs), targets).item()
            self.seen += inputs.shape[0]
        return self.total / self.seen  # error: metric-misreported


Trainer().fit(8)
