"""Embeddings of pairs: the lr is a thousand times too large, and the units of a layer die."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)
KINDS = torch.randn(6, 20)


def pairs(n):
    one, two = torch.randint(0, 6, (2, n))
    return KINDS[one] + 0.3 * torch.randn(n, 20), KINDS[two] + 0.3 * torch.randn(n, 20), (one != two).float()


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, left, right):
        return self.body(left), self.body(right)


net = Twins()
opt = torch.optim.Adam(net.parameters(), lr=3.0)
for step in range(520):
    left, right, different = pairs(64)
    a, b = net(left, right)  # error: output-ignores-input
    gap = F.pairwise_distance(a, b)
    loss = ((1 - different) * gap**2 + different * F.relu(2.0 - gap) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 100 == 0:
        print(step, loss.item())
