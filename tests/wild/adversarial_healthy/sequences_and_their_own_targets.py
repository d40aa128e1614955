"""Targets that are parts of the inputs: the next token, masked patches and tokens, tags of sorted sentences, a translation."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
rows = torch.randint(1, 20, (320, 1))
tokens = (rows + torch.arange(9) * torch.randint(1, 4, (320, 1))) % 20
tags, lengths = (tokens % 5), torch.randint(3, 10, (320,))
loader = DataLoader(TensorDataset(tokens, tags, lengths), batch_size=32, shuffle=True)


class Tagger(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.embed, self.gru = nn.Embedding(21, 12), nn.GRU(12, 24, batch_first=True)
        self.head = nn.Linear(24, outputs)

    def forward(self, ids):
        return self.head(self.gru(self.embed(ids))[0])


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(21, 16), nn.GRU(16, 24, batch_first=True)
        self.decoder, self.head = nn.GRU(16, 24, batch_first=True), nn.Linear(24, 5)

    def forward(self, source, target):
        return self.head(self.decoder(self.embed(target), self.encoder(self.embed(source))[1])[0])


def next_token(model, ids, tags, n):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def masked_tokens(model, ids, tags, n):
    hidden = torch.rand(ids.shape) < 0.3
    return F.cross_entropy(model(ids.masked_fill(hidden, 20))[hidden], ids[hidden])


def tags_of_sorted_sentences(model, ids, tags, n):
    order = n.argsort(descending=True)
    ids, tags, n = ids[order], tags[order], n[order]
    tags = tags.masked_fill(torch.arange(9) >= n[:, None], -100)
    return F.cross_entropy(model(ids).view(-1, 5), tags.view(-1), ignore_index=-100)


def tags_time_first(model, ids, tags, n):
    return F.cross_entropy(model(ids).transpose(0, 1).reshape(-1, 5), tags.T.reshape(-1))


def translation(model, ids, tags, n):
    return F.cross_entropy(model(ids, tags[:, :-1]).transpose(1, 2), tags[:, 1:])


def reversed_copy(model, ids, tags, n):
    return F.cross_entropy(model(ids.flip(1)).transpose(1, 2), tags.flip(1))


tasks = {next_token: Tagger(21), masked_tokens: Tagger(21), tags_of_sorted_sentences: Tagger(5)}
tasks |= {tags_time_first: Tagger(5), translation: Translator(), reversed_copy: Tagger(5)}
for make, model in tasks.items():
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        for batch in loader:
            loss = make(model, *batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(make.__name__, loss.item())
