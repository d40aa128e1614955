"""A schedule waits for its value to rise: it cuts the rate every few epochs, until the error stands still."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)
x = torch.randn(800, 6)
y = torch.sin(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
train = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=50, shuffle=True)
net = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.1, patience=4)
for _epoch in range(40):
    net.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        value = nn.functional.mse_loss(net(x[600:]), y[600:]).item()
    schedule.step(value)  # error: plateau-without-metric
print(f"{value:.4f} at a rate of {optimizer.param_groups[0]['lr']:.1e}")
