"""The overlap of masks is summed over pictures, and divided by the number of batches."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
masks = (torch.rand(120, 1, 4, 4) > 0.6).float().repeat_interleave(3, 2).repeat_interleave(3, 3)
pictures = masks + 0.4 * torch.randn(120, 1, 12, 12)
train = DataLoader(TensorDataset(pictures[:90], masks[:90]), batch_size=15, shuffle=True)
held_out = DataLoader(TensorDataset(pictures[90:], masks[90:]), batch_size=15)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(5):
    for picture, mask in train:
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(net(picture), mask).backward()
        optimizer.step()
    overlap = 0.0
    with torch.no_grad():
        for picture, mask in held_out:
            found = net(picture) > 0
            both = (found & (mask > 0)).sum((1, 2, 3))
            any_of_them = (found | (mask > 0)).sum((1, 2, 3)).clamp(min=1)
            overlap += (both / any_of_them).sum().item()
    print(f"epoch {epoch}, IoU {overlap / len(held_out):.3f}")  # error: metric-misreported
