"""Snapshot-like training: half a cosine per epoch, T_max = len(loader), stepped per batch."""
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(120, 4), torch.randint(0, 2, (120,))), batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader))
snapshots = []
for epoch in range(24):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
    if epoch % 2 == 0:
        snapshots.append(copy.deepcopy(model.state_dict()))
print(len(snapshots), loss.item())
