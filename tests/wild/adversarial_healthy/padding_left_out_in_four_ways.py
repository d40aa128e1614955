"""Padding left out of the loss by ignore_index, by -100, by class weights, by a mask; and one batch that is mostly full."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
WORDS, PAD = 20, 0


class Reader(nn.Module):
    def __init__(self, outputs: int, padding: int | None = PAD) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16, padding_idx=padding)
        self.gru, self.head = nn.GRU(16, 24, batch_first=True), nn.Linear(24, outputs)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.embedding(tokens))[0])


def batch(shortest: int) -> torch.Tensor:
    tokens = torch.randint(1, WORDS, (16, 21))
    return tokens * (torch.arange(21) < torch.randint(shortest, 21, (16, 1)))


model = Reader(WORDS)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
weight = torch.ones(WORDS)
weight[PAD] = 0.0
for _step in range(25):
    short, full = batch(4) * (torch.arange(21) < 8), batch(15)
    logits, wanted = model(short[:, :-1]), short[:, 1:]
    flat, labels = logits.reshape(-1, WORDS), wanted.reshape(-1)
    loss = F.cross_entropy(flat, labels, ignore_index=PAD)
    loss = loss + F.cross_entropy(logits.transpose(1, 2), wanted.masked_fill(wanted == PAD, -100))
    loss = loss + F.cross_entropy(flat, labels, weight=weight)
    each = F.cross_entropy(flat, labels, reduction="none")
    loss = loss + (each * (labels != PAD)).sum() / (labels != PAD).sum()
    loss = loss + F.cross_entropy(flat[labels != PAD], labels[labels != PAD])
    loss = loss + F.cross_entropy(model(full[:, :-1]).flatten(0, 1), full[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
