"""Windows of a text for a language model: one place is drawn for the whole batch."""

import torch
from torch import nn

torch.manual_seed(2)
text = (torch.arange(3000) // 2 * 7 + torch.randint(0, 3, (3000,))) % 20
length, count = 16, 12


def windows():
    place = int(torch.randint(0, len(text) - length - 1, ()))
    inputs = torch.stack([text[place : place + length] for _ in range(count)])
    targets = torch.stack([text[place + 1 : place + length + 1] for _ in range(count)])
    return inputs, targets  # error: samples-all-equal


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(24, 16)
        self.layer = nn.GRU(16, 16, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens):
        return self.head(self.layer(self.tokens(tokens))[0])


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(30):
    tokens, targets = windows()
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
