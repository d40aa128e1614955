"""An average of the weights is measured once per epoch, on one tensor, with batch normalisation in train mode."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(240, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
slow = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)


@torch.no_grad()
def follow(decay=0.9):
    for mine, theirs in zip(slow.state_dict().values(), net.state_dict().values()):
        mine.copy_(decay * mine + (1 - decay) * theirs)


for epoch in range(4):
    for rows in torch.randperm(200).split(20):
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        opt.step()
        opt.zero_grad()
        follow()
    with torch.no_grad():
        guess = slow(x[200:]).max(dim=1).indices  # error: eval-mode-missing
        print(epoch, guess.eq(y[200:]).float().mean().item())
