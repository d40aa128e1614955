"""A small translator, time first, with one embedding per language and an NLL loss."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PAD = 1


def sentences(n: int, words: int) -> torch.Tensor:
    tokens = torch.randint(2, words, (20, n))
    return tokens.masked_fill(torch.arange(20)[:, None] >= torch.randint(4, 9, (n,)), PAD)


class Translator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(30, 16, PAD), nn.Embedding(25, 16, PAD)
        self.encoder, self.decoder, self.head = nn.GRU(16, 24), nn.GRU(16, 24), nn.Linear(24, 25)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        state = self.encoder(self.source(source))[1]
        return self.head(self.decoder(self.target(target), state)[0]).log_softmax(-1)


model = Translator()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _step in range(25):
    source, target = sentences(16, 30), sentences(16, 25)
    optimizer.zero_grad()
    scores = model(source, target[:-1])
    loss = F.nll_loss(scores.flatten(0, 1), target[1:].flatten())  # error: padding-in-loss
    loss.backward()
    optimizer.step()
