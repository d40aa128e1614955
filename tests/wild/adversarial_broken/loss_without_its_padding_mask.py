"""A language model in a class: the mask of padding is applied to the losses, and the sum is taken of the others."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
words, length = 20, 10


class Trainer:
    def __init__(self):
        self.embed = nn.Embedding(words, 16)
        self.layer = nn.GRU(16, 24, batch_first=True)
        self.head = nn.Linear(24, words)
        parts = nn.ModuleList([self.embed, self.layer, self.head])
        self.optimizer = torch.optim.Adam(parts.parameters(), lr=3e-3)

    def batch(self):
        text = torch.cumsum(torch.randint(1, 3, (16, length)), 1) % words
        text[torch.arange(length) >= torch.randint(4, length + 1, (16, 1))] = 0
        return text[:, :-1], text[:, 1:]

    def loss(self, text, targets):
        logits = self.head(self.layer(self.embed(text))[0])
        losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
        masked = losses * (targets != 0)  # error: result-never-read
        return losses.mean()

    def fit(self, steps):
        for _ in range(steps):
            loss = self.loss(*self.batch())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Trainer().fit(40)
