"""Targets that are tokens of the input, on purpose: masked tokens, an autoencoder of sentences, a copy task, time first."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
SIZE, LENGTH, PAD = 14, 12, 0


class Sentences(nn.Module):
    """Reads a sentence both ways into one vector, and writes it from there."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SIZE, 16, padding_idx=PAD)
        self.reader, self.code = nn.GRU(16, 16, batch_first=True, bidirectional=True), nn.Linear(64, 12)
        self.writer, self.out = nn.GRU(28, 32, batch_first=True), nn.Linear(32, SIZE)

    def forward(self, tokens):
        states, last = self.reader(self.embed(tokens))
        code = self.code(torch.cat([states.mean(1), last.transpose(0, 1).flatten(1)], 1))
        given = self.embed(tokens[:, :-1])
        return self.out(self.writer(torch.cat([given, code[:, None].expand(-1, given.shape[1], -1)], 2))[0])


class Copying(nn.Module):
    """An encoder and a decoder, which learn to write their input."""

    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(SIZE, 16), nn.Embedding(LENGTH, 16)
        self.net = nn.Transformer(16, 2, 1, 1, 32, 0.0, batch_first=True)
        self.out = nn.Linear(16, SIZE)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        one, two = (self.embed(x) + self.places.weight[: x.shape[1]] for x in (source, target))
        return self.out(self.net(one, two, tgt_mask=mask))


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SIZE, 16)
        self.layer, self.out = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), nn.Linear(16, SIZE)

    def forward(self, tokens):
        return self.out(self.layer(self.embed(tokens)))


class TimeFirst(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(SIZE, 16), nn.LSTM(16, 24), nn.Linear(24, SIZE)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def sentences(count):
    return 2 + (torch.randint(0, 12, (count, 1)) + torch.randint(1, 3, (count, LENGTH)).cumsum(1)) % 12


def autoencoder(model, x):
    return F.cross_entropy(model(x).transpose(1, 2), x[:, 1:])


def copying(model, x):
    return F.cross_entropy(model(x, x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())


def masked(model, x):
    hidden = torch.rand(x.shape) < 0.3
    return F.cross_entropy(model(x.masked_fill(hidden, 1)).transpose(1, 2), x.masked_fill(~hidden, -100))


def time_first(model, x):
    return F.cross_entropy(model(x.t()[:-1]).flatten(0, 1), x.t()[1:].flatten())


for kind, loss_of in ((Sentences, autoencoder), (Copying, copying), (Masked, masked), (TimeFirst, time_first)):
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(30):
        loss = loss_of(model, sentences(24))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{kind.__name__} {loss.item():.3f}")
