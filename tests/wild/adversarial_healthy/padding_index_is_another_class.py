"""Most targets are 0, and 0 is a class: a tagger's "outside", the blank of a memory task, an end token that repeats."""

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


tagger, copier, names = Reader(5), Reader(WORDS), Reader(WORDS, None)
optimizer = torch.optim.Adam([*tagger.parameters(), *copier.parameters(), *names.parameters()], lr=1e-2)
for _step in range(25):
    words = torch.randint(1, WORDS, (16, 24)) * (torch.arange(24) < torch.randint(20, 25, (16, 1)))
    tags = torch.where((words % 4 == 1) & (torch.arange(24) < 10), words % 5, 0)
    loss = F.cross_entropy(tagger(words).transpose(1, 2), tags)

    remembered = torch.randint(1, WORDS, (16, 4))
    given = F.pad(remembered, (0, 16))
    loss = loss + F.cross_entropy(copier(given).flatten(0, 1), F.pad(remembered, (16, 0)).flatten())

    ended = words * (torch.arange(24) < 8)
    loss = loss + F.cross_entropy(names(ended[:, :-1]).transpose(1, 2), ended[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
