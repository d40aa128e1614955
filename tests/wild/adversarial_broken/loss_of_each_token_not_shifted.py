"""A language model with a loss of each token, masked by hand; the targets are the tokens that it reads."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
PAD = 0
lengths = torch.randint(6, 17, (700,))
start, pace = torch.randint(0, 30, (700, 1)), torch.randint(1, 5, (700, 1))
words = 1 + (start + pace * torch.arange(16)) % 30
words = words.masked_fill(torch.arange(16) >= lengths[:, None], PAD)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(31, 24), nn.GRU(24, 32, batch_first=True), nn.Linear(32, 31)

    def forward(self, tokens):
        return self.head(self.rnn(self.embed(tokens))[0])


def masked(model, tokens):
    logits = model(tokens)
    each = F.cross_entropy(logits.transpose(1, 2), tokens, reduction="none")  # error: target-in-input
    real = (tokens != PAD).float()
    return (each * real).sum() / real.sum()


model = Model()
optimizer = torch.optim.Adam(model.parameters(), 3e-3)
for epoch in range(3):
    for chosen in torch.randperm(700).split(50):
        loss = masked(model, words[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
