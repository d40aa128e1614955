"""A model reads a prefix in both directions and predicts the rest: the losses of the prefix are left out by hand."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PREFIX, PAD = 11, 0
start, pace = torch.randint(0, 40, (600, 1)), torch.randint(1, 6, (600, 1))
words = 1 + (start + pace * torch.arange(17)) % 40
words = words.masked_fill(torch.arange(17) >= torch.randint(13, 18, (600, 1)), PAD)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.places, self.head = nn.Embedding(41, 32), nn.Embedding(16, 32), nn.Linear(32, 41)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        hidden = torch.ones(16, 16, dtype=torch.bool).triu(1)
        hidden[:, :PREFIX] = False
        self.register_buffer("hidden", hidden)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.size(1)]
        return self.head(self.layer(x, self.hidden[: tokens.size(1), : tokens.size(1)]))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
for epoch in range(4):
    for chosen in torch.randperm(600).split(50):
        tokens = words[chosen]
        each = F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:], reduction="none")
        counted = (torch.arange(16) >= PREFIX - 1) & (tokens[:, 1:] != PAD)
        loss = (each * counted).sum() / counted.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
