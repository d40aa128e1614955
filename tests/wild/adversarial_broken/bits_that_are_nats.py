"""A model of characters reports its loss in nats as bits per character, in a class."""

import torch
from torch import nn
from torch.nn import functional as F


class Trainer:
    def __init__(self):
        torch.manual_seed(4)
        self.text = torch.randint(0, 3, (3000,)).cumsum(0) % 10
        self.model = nn.Sequential(nn.Embedding(10, 16), nn.Linear(16, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-2)
        self.metrics = {}

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        nats = count = 0
        for rows in self.text[2400:].split(60):
            nats += F.cross_entropy(self.model(rows[:-1]), rows[1:], reduction="sum").item()
            count += len(rows) - 1
        self.metrics["bits_per_char"] = nats / count  # error: metric-misreported
        self.model.train()

    def fit(self):
        for epoch in range(4):
            for rows in self.text[:2400].split(80):
                self.optimizer.zero_grad()
                F.cross_entropy(self.model(rows[:-1]), rows[1:]).backward()
                self.optimizer.step()
            self.evaluate()
            print(epoch, self.metrics)


Trainer().fit()
