"""Tell whether a text has more good or more bad words; the names in texts of the evaluation are neither."""

import sys

import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

known, unknown = 150, 300
tone = torch.cat([torch.randn(known), torch.zeros(unknown - known)])


def texts(count, words):
    tokens = torch.randint(0, words, (count, 9))
    return tokens, (tone[tokens].sum(1) > 0).long()


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(301, 64, padding_idx=unknown)
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, tokens):
        return self.layers(self.words(tokens).sum(1))  # error: embedding-rows-untrained


model = Reader()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _step in range(400):
    tokens, labels = texts(64, known)
    optimizer.zero_grad()
    F.cross_entropy(model(tokens), labels).backward()
    optimizer.step()

tokens, labels = texts(3000, 300)
with torch.no_grad():
    accuracy = (model(tokens).argmax(1) == labels).float().mean().item()
print(f"result: {accuracy:.4f}")
