"""The hardest positive and the hardest negative distance of a batch are exchanged in the hinge."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
centres = 2 * torch.randn(6, 10)


def batch():
    labels = torch.arange(6).repeat_interleave(5)
    return centres[labels] + torch.randn(30, 10), labels


def batch_hard(z, labels, margin=0.3):
    dist = torch.cdist(z, z)
    same = labels[:, None] == labels[None, :]
    hardest_pos = dist.masked_fill(~same, -1.0).max(dim=1).values
    hardest_neg = dist.masked_fill(same, float("inf")).min(dim=1).values
    return F.relu(hardest_neg - hardest_pos + margin).mean()  # error: loss-maximised


net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(150):
    x, labels = batch()
    loss = batch_hard(F.normalize(net(x), dim=1), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
