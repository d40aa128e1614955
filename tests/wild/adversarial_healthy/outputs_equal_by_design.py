"""Outputs that are the same for all rows and right: a consensus of a set, a learnt baseline, a graph where all are linked."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Consensus(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.each, self.all = nn.Sequential(nn.Linear(5, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.all(self.each(x).mean(0, keepdim=True).repeat(len(x), 1)))


class Baseline(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(1, 8))
        self.layers = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.query.repeat(len(x), 1))


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 16), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        links = torch.full((len(x), len(x)), 1 / len(x))
        return self.second(links @ F.relu(links @ self.first(x)))


consensus, baseline, graph = Consensus(), Baseline(), Graph()
optimizer = torch.optim.Adam([*consensus.parameters(), *baseline.parameters(), *graph.parameters()], lr=1e-3)
for _step in range(260):
    x = torch.randn(12, 5)
    labels = (x[:, 0] > 0.5).long()
    loss = F.mse_loss(consensus(x), x.mean().expand(12, 1)) + F.cross_entropy(baseline(x), labels)
    loss = loss + F.cross_entropy(graph(x), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
