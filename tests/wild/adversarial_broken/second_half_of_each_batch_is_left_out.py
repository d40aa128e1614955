"""The loss was cut to a part of the batch to fit the memory once, and stayed so."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(640, 6)
kinds = (points[:, :3].sum(1) > 0).long() + (points[:, 3] > 0).long()
net = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()

for epoch in range(3):
    for batch, kind in DataLoader(TensorDataset(points, kinds), batch_size=32, shuffle=True):
        keep = len(batch) // 2
        optimizer.zero_grad()
        loss = criterion(net(batch)[:keep], kind[:keep])  # error: outputs-without-effect
        loss.backward()
        optimizer.step()
