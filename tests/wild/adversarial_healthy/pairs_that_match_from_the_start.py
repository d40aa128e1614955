"""Contrastive loss with weak augmentation: the largest score of each row is that of its pair from the first step on."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
loader = DataLoader(TensorDataset(torch.randn(320, 12)), batch_size=32, shuffle=True)


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + 0.01 * torch.randn_like(x)


def one_way(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    left, right = F.normalize(net(noisy(x)), dim=1), F.normalize(net(noisy(x)), dim=1)
    return F.cross_entropy(left @ right.t() / 0.1, torch.arange(len(x)))


net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(4):
    for (x,) in loader:
        loss = one_way(net, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(round(loss.item(), 3))
