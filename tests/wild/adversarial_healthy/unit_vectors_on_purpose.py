"""Unit vectors along other dimensions: attention between channels, sums of outer products, words of a query in its document."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(50, 16), nn.Linear(16, 16)

    def forward(self, ids):
        return F.normalize(self.out(self.words(ids)), dim=-1)


class Channels(nn.Module):
    """Attention of channels to channels: each has a norm of one over the positions, which the product sums over."""

    def __init__(self):
        super().__init__()
        self.qkv, self.heat = nn.Linear(8, 24), nn.Parameter(torch.ones(1))

    def forward(self, x):
        q, k, v = self.qkv(x).transpose(1, 2).chunk(3, 1)
        weights = (self.heat * F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(1, 2)).softmax(-1)
        return x + (weights @ v).transpose(1, 2)


tower = Tower()
optimizer = torch.optim.Adam(tower.parameters(), lr=3e-3)
for step in range(80):
    documents = torch.randint(0, 50, (16, 9))
    queries = torch.stack([words[torch.randperm(9)[:4]] for words in documents])
    scores = torch.einsum("itd,jud->ijtu", tower(queries), tower(documents)).amax(3).sum(2)
    loss = F.cross_entropy(5 * scores, torch.arange(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), Channels())
head = nn.Linear(64, 3)
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=3e-3)
for step in range(80):
    kinds = torch.randint(0, 3, (32,))
    x = torch.randn(32, 9, 5) * (1 + kinds.view(-1, 1, 1))
    features = net(x)
    whole, of_each = F.normalize(features, dim=1), F.normalize(features, dim=2)
    moments = whole.transpose(1, 2) @ whole + of_each.transpose(1, 2) @ of_each
    loss = F.cross_entropy(head(moments.flatten(1)), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
