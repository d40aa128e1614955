"""Queries that are repeated one after another, and joined with candidates that lie together for each query."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
torch.set_num_threads(1)
queries, candidates = torch.randn(500, 8), torch.randn(500, 6, 8)
best = (queries.unsqueeze(1) * candidates).sum(2).argmax(1)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 1))

    def forward(self, query, options):
        batch, count, size = options.shape
        query = query.repeat(count, 1)  # error: batch-changes-output
        options = options.reshape(batch * count, size)
        return self.net(torch.cat([query, options, query * options], dim=1)).view(batch, count)


scorer = Scorer()
optimizer = torch.optim.Adam(scorer.parameters(), lr=3e-3)
for epoch in range(6):
    for rows in torch.randperm(400).split(40):
        loss = F.cross_entropy(scorer(queries[rows], candidates[rows]), best[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (scorer(queries[400:], candidates[400:]).argmax(1) == best[400:]).float().mean()
    print(epoch, loss.item(), right.item())
