# says: `loss` was made from `.argmax()`, which has no graph
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 3)

    def step(self, x, y):
        scores = self.model(x)
        pred = scores.argmax(1)  # related
        loss = (pred.float() - y).abs().mean()
        loss.backward()  # died: loss-without-graph


Trainer().step(torch.randn(8, 4), torch.randint(0, 3, (8,)))
