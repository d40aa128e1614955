"""Contrastive loss of joined views with weak augmentation: the largest score of each row is that of its pair from the first step on."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(320, 12)), batch_size=32, shuffle=True)


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + 0.01 * torch.randn_like(x)


def joined(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    both = F.normalize(net(torch.cat([noisy(x), noisy(x)])), dim=1)
    scores = (both @ both.t() / 0.1).masked_fill(torch.eye(len(both), dtype=torch.bool), float("-inf"))
    return F.cross_entropy(scores, torch.arange(len(both)).roll(len(x)))


net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for (x,) in loader:
        loss = joined(net, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(round(loss.item(), 3))
