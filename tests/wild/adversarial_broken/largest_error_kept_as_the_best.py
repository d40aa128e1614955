"""A validation error replaced an accuracy: the comparison still waits for a larger value."""

import torch
from torch import nn

torch.manual_seed(6)
x = torch.randn(700, 6)
y = (x[:, :2] * x[:, 2:4]).sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(6, 48), nn.GELU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
mse = nn.MSELoss()
best, kept = float("-inf"), None
for _epoch in range(12):
    net.train()
    for rows in torch.randperm(500).split(50):
        optimizer.zero_grad()
        mse(net(x[rows]), y[rows]).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        current = mse(net(x[500:600]), y[500:600]).item()
    if current > best:  # error: worst-weights-kept
        best = current
        kept = {name: value.clone() for name, value in net.state_dict().items()}
net.load_state_dict(kept)
net.eval()
with torch.no_grad():
    print(f"test error {mse(net(x[600:]), y[600:]).item():.4f}")
