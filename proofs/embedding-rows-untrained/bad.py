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
    tokens = torch.randint(0, words, (count, 6))
    return tokens, (tone[tokens].sum(1) > 0).long()


words = nn.Embedding(301, 32, padding_idx=unknown)
model = nn.Sequential(words, nn.Flatten(), nn.Linear(6 * 32, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _step in range(800):
    tokens, labels = texts(64, known)
    optimizer.zero_grad()
    F.cross_entropy(model(tokens), labels).backward()
    optimizer.step()

tokens, labels = texts(3000, 300)
with torch.no_grad():
    scores = model(tokens)  # error: embedding-rows-untrained
print(f"result: {(scores.argmax(1) == labels).float().mean().item():.4f}")
