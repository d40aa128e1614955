"""Pairs of drawings: the network of both compares the first one with itself."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(4)


def drawings(n):
    kind = torch.randint(0, 6, (n,))
    return torch.randn(6, 8, 8, generator=torch.Generator().manual_seed(1))[kind] + 0.3 * torch.randn(n, 8, 8), kind


def pairs(n):
    (one, kind), (two, other) = drawings(n), drawings(n)
    return one.unsqueeze(1), two.unsqueeze(1), (kind != other).float()


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 12))

    def once(self, x):
        return self.body(x)

    def forward(self, left, right):  # error: input-without-influence
        return self.once(left), self.once(left)


net = Twins()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(200):
    left, right, different = pairs(64)
    a, b = net(left, right)
    gap = F.pairwise_distance(a, b)
    loss = ((1 - different) * gap**2 + different * F.relu(1.5 - gap) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    left, right, different = pairs(500)
    gap = F.pairwise_distance(*net(left, right))
print("right", ((gap > 0.75).float() == different).float().mean().item())
