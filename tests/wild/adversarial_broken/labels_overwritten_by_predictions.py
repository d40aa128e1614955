"""The variable of the labels gets the decisions of the model, for a metric, one line too early."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(800, 6)
spam = (points[:, 0] * points[:, 1] > 0).float()
net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)


def update(point: torch.Tensor, label: torch.Tensor) -> tuple[float, float]:
    score = net(point)
    right = ((score > 0) == (label > 0.5)).float().mean().item()
    label = (score > 0).float()
    loss = F.binary_cross_entropy_with_logits(score, label)  # error: target-is-the-result
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item(), right


for epoch in range(3):
    found = [update(point, label) for point, label in DataLoader(TensorDataset(points, spam), 40, shuffle=True)]
    print(epoch, sum(loss for loss, _ in found) / len(found), sum(right for _, right in found) / len(found))
