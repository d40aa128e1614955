"""A contrastive module with an encoder for keys, copied at the start; the update was written, and is never called."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Contrast(nn.Module):
    def __init__(self, network, momentum=0.9):
        super().__init__()
        self.queries, self.keys, self.momentum = network, copy.deepcopy(network), momentum
        self.keys.requires_grad_(False)

    @torch.no_grad()
    def follow(self):
        for key, query in zip(self.keys.parameters(), self.queries.parameters()):
            key.mul_(self.momentum).add_(query, alpha=1 - self.momentum)

    def forward(self, one, other):
        q = F.normalize(self.queries(one), dim=1)
        with torch.no_grad():
            k = F.normalize(self.keys(other), dim=1)  # error: average-never-updated
        return q @ k.T / 0.2


torch.manual_seed(4)
model = Contrast(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)))
optimizer = torch.optim.SGD(model.queries.parameters(), lr=0.1)
for _ in range(110):
    x = torch.randn(40, 12)
    loss = F.cross_entropy(model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)), torch.arange(40))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
