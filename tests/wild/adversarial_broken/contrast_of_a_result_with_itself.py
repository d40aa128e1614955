"""The queue of negatives is right, and the positive of a query is the query: its second view is made and not used."""

import torch
from torch import nn


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 16))
        self.register_buffer("queue", nn.functional.normalize(torch.randn(256, 16), dim=1))

    def forward(self, one, other):
        query, key = (nn.functional.normalize(self.net(part), dim=1) for part in (one, other))
        positive = (query * query).sum(1, keepdim=True)
        scores = torch.cat([positive, query @ self.queue.T], dim=1)
        self.queue = torch.cat([key.detach(), self.queue])[:256]
        return scores / 0.2, torch.zeros(len(query), dtype=torch.long)


torch.manual_seed(0)
x = torch.randn(600, 12)
model = Contrast()
optimizer = torch.optim.Adam(model.net.parameters(), lr=1e-3)
for step in range(120):
    rows = torch.randint(0, 600, (64,))
    one, other = (x[rows] + 0.3 * torch.randn(64, 12) for _ in range(2))
    scores, partner = model(one, other)
    loss = nn.functional.cross_entropy(scores, partner)  # error: batch-parts-equal
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
