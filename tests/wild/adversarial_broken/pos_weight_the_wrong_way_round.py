"""The factor of positive labels is computed as positive labels per negative one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
signals = torch.randn(1600, 8)
faults = (signals[:, 0] + 0.5 * torch.randn(1600) > 1.4).float()
positive = faults.sum()
net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss(pos_weight=positive / (len(faults) - positive))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for _ in range(5):
    for signal, fault in DataLoader(TensorDataset(signals, faults), batch_size=64, shuffle=True):
        loss = criterion(net(signal), fault)  # error: class-weights-inverted
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
