"""A decoder that gets the token before each one, true or its own, in a model that is called with the targets."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
random.seed(0)
KINDS, LENGTH = 9, 4


class Translator(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.embed = nn.Embedding(KINDS + 1, 24)
        self.encoder = nn.GRU(24, width, batch_first=True)
        self.cell, self.out = nn.GRUCell(24, width), nn.Linear(width, KINDS)

    def forward(self, source, target, ratio=1.0):
        hidden = self.encoder(self.embed(source))[1][0]
        token, outputs = source.new_full((len(source),), KINDS), []
        for step in range(target.shape[1]):
            hidden = self.cell(self.embed(token), hidden)
            outputs.append(self.out(hidden))
            forced = ratio >= 1 or random.random() < ratio
            token = target[:, step] if forced else outputs[-1].argmax(-1)
        return torch.stack(outputs, 1)


sources = torch.randint(0, KINDS, (1300, LENGTH))
targets = sources.cumsum(1) % KINDS
loader = DataLoader(TensorDataset(sources[:1100], targets[:1100]), batch_size=50, shuffle=True)
model = Translator()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(5):
    model.train()
    for source, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(source, target, 1.0 - 0.1 * epoch).flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        greedy = model(sources[1100:], targets[1100:], 0.0).argmax(-1)
    print(f"epoch {epoch}: loss {loss.item():.3f}, greedy {(greedy == targets[1100:]).float().mean():.3f}")
