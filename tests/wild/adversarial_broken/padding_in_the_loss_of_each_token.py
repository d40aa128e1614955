"""Losses of each token, weighted by hand: once without a mask, once with a mask that keeps padding alone."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PAD = 0
start, pace = torch.randint(0, 30, (700, 1)), torch.randint(1, 5, (700, 1))
words = 1 + (start + pace * torch.arange(17)) % 30
words = words.masked_fill(torch.arange(17) >= torch.randint(5, 18, (700, 1)), PAD)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(31, 24, padding_idx=PAD), nn.Linear(32, 31)
        self.rnn = nn.GRU(24, 32, batch_first=True)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def averaged(model, tokens):
    targets = tokens[:, 1:]
    each = F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), targets, reduction="none")  # error: padding-in-loss
    return each.mean()


def inverted(model, tokens):
    targets = tokens[:, 1:].reshape(-1)
    scores = model(tokens[:, :-1]).flatten(0, 1)
    each = F.cross_entropy(scores, targets, reduction="none")  # error: padding-in-loss
    counted = targets.eq(PAD)
    return each[counted].mean()


for loss_of in (averaged, inverted):
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(3):
        for chosen in torch.randperm(700).split(50):
            loss = loss_of(model, words[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss_of.__name__, loss.item())
