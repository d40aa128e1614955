"""Padding is left out of losses of each token by hand: by a product, by an index, by weights; a batch has none."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PAD = 0
start, pace = torch.randint(0, 30, (700, 1)), torch.randint(1, 5, (700, 1))
whole = 1 + (start + pace * torch.arange(17)) % 30
words = whole.masked_fill(torch.arange(17) >= torch.randint(5, 18, (700, 1)), PAD)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(31, 24, padding_idx=PAD), nn.Linear(32, 31)
        self.rnn = nn.GRU(24, 32, batch_first=True)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def product(each, targets):
    real = (targets != PAD).float()
    return (each * real).sum() / real.sum()


def index(each, targets):
    return each[targets != PAD].mean()


def of_rows(each, targets):
    real = (targets != PAD).float()
    return ((each * real).sum(1) / real.sum(1).clamp(min=1)).mean()


for weigh, data in ((product, words), (index, words), (of_rows, words), (index, whole)):
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(2):
        for chosen in torch.randperm(700).split(50):
            tokens = data[chosen]
            targets = tokens[:, 1:]
            each = F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), targets, reduction="none")
            loss = weigh(each, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(weigh.__name__, loss.item())
