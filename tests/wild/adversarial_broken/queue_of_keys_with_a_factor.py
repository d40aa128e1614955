"""Digits and a queue of codes of earlier ones, by an encoder that follows slowly."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
T = 0.07
x = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
follower = copy.deepcopy(encoder).requires_grad_(False)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
queue = F.normalize(torch.randn(512, 32), dim=1)
for step in range(200):
    batch = x[torch.randint(0, len(x), (64,))]
    query = F.normalize(encoder(batch + 0.2 * torch.randn_like(batch)), dim=1)
    with torch.no_grad():
        for mine, other in zip(follower.parameters(), encoder.parameters(), strict=True):
            mine.lerp_(other, 0.05)
        key = F.normalize(follower(batch + 0.2 * torch.randn_like(batch)), dim=1)
    same = torch.einsum("nc,nc->n", query, key)[:, None]
    other = torch.einsum("nc,kc->nk", query, queue)
    scores = torch.cat([same, other], dim=1) * T  # error: similarities-scaled-down
    loss = F.cross_entropy(scores, torch.zeros(len(batch), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue = torch.cat([key, queue])[:512]
print(f"loss {loss.item():.4f}")
