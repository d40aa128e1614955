"""The targets have a channel and the squeezed predictions have none: each is compared with all the others."""

import torch
from torch import nn

torch.manual_seed(17)
masks = (torch.rand(160, 1, 5, 5) > 0.5).float().repeat_interleave(2, 2).repeat_interleave(2, 3)
pictures = masks + 0.3 * torch.randn(160, 1, 10, 10)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Sigmoid())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(80):
    rows = torch.randint(0, 160, (16,))
    found = net(pictures[rows]).squeeze(1)
    loss = ((found - masks[rows]) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()  # error: broadcast-target
    optimizer.step()
print(loss.item())
