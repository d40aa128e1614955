"""Masks of 0 and 255 that are divided first; labels of -1 and 1 with the losses that are made for them."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
pictures = torch.randn(64, 1, 8, 8)
masks = ((pictures + 0.5 * torch.randn(64, 1, 8, 8)) > 0).to(torch.uint8) * 255
net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

for step in range(25):
    rows = torch.randperm(64)[:16]
    logits, signs = net(pictures[rows]), masks[rows].float() / 127.5 - 1
    loss = F.binary_cross_entropy_with_logits(logits, masks[rows] / 255, pos_weight=torch.tensor(3.0))
    loss = loss + F.soft_margin_loss(logits, signs) + F.hinge_embedding_loss(1 + logits, signs)
    with torch.no_grad():
        F.binary_cross_entropy_with_logits(logits, signs)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
