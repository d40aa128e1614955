"""Attention with weights that sum to one for each key, and a sum over the keys."""
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
words = torch.randint(0, 15, (700, 12))
labels = ((words == words[:, :1]).sum(1) > 1).long()


class Reader(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.words, self.places = nn.Embedding(15, size), nn.Embedding(12, size)
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.head = nn.Linear(size, 2)

    def forward(self, x):
        h = self.words(x) + self.places(torch.arange(x.shape[1]))
        scores = self.q(h) @ self.k(h).transpose(1, 2) / math.sqrt(h.shape[2])
        weights = F.dropout(F.softmax(scores, dim=1), 0.1, self.training)  # error: softmax-wrong-dim
        return self.head((h + weights @ self.v(h)).mean(1))


model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(90):
    i = torch.randint(0, 600, (30,))
    loss = F.cross_entropy(model(words[i]), labels[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(loss.item(), (model(words[600:]).argmax(1) == labels[600:]).float().mean().item())
