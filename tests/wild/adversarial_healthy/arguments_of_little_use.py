"""Arguments without influence on purpose: a common signature, a first token only, a condition dropped at random, a gate."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


class Baseline(nn.Module):
    """Takes the edges because the other models of a comparison do."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6))

    def forward(self, x, edges):
        return self.net(x)


class FreeRunning(nn.Module):
    """Trained on its own tokens: of the right ones it takes the first, and their number."""

    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(6, 8), nn.GRUCell(8, 8), nn.Linear(8, 6)

    def forward(self, x, tokens):
        state, token, outputs = torch.tanh(x.repeat(1, 2)[:, :8]), tokens[:, 0], []
        for _ in range(tokens.shape[1] - 1):
            state = self.cell(self.embedding(token), state)
            outputs.append(self.out(state))
            token = outputs[-1].argmax(1)
        return torch.stack(outputs, 1)


class Guided(nn.Module):
    """Free of its condition in every other batch; a gate begins at zero."""

    def __init__(self):
        super().__init__()
        self.condition, self.net = nn.Embedding(6, 6), nn.Linear(6, 6)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x, label):
        if self.training and random.random() < 0.5:
            return self.net(x)
        return self.net(x) + self.gate * self.condition(label)


class Causal(nn.Module):
    """A flag stands for the mask."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(6, 2, 16, batch_first=True)

    def forward(self, x, mask):
        return self.layer(x, src_mask=mask, is_causal=True)


def train(model, second, loss_of):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(24):
        x, label = torch.randn(32, 6), torch.randint(0, 6, (32,))
        x = x + nn.functional.one_hot(label, 6)
        loss = loss_of(model, x, second(x, label), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{type(model).__name__} {loss.item():.3f}")


def right(model, x, second, label):
    return nn.functional.cross_entropy(model(x, second), label)


def tokens_right(model, x, tokens, label):
    return nn.functional.cross_entropy(model(x, tokens).flatten(0, 1), tokens[:, 1:].flatten())


def next_one(model, x, mask, label):
    series = (x.cumsum(1)[:, :, None] + torch.arange(6)).tanh()
    return nn.functional.mse_loss(model(series, mask)[:, :-1], series[:, 1:])


train(Baseline(), lambda x, label: torch.randint(0, 32, (2, 64)), right)
train(FreeRunning(), lambda x, label: (label[:, None] + torch.arange(5)) % 6, tokens_right)
train(Guided(), lambda x, label: label, right)
train(Causal(), lambda x, label: torch.ones(6, 6).triu(1).bool(), next_one)
