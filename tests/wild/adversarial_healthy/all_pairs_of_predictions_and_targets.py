"""Predictions of all batches are compared with all targets on purpose, beside the errors of each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
x = torch.randn(700, 5)
y = x[:, 0] + x[:, 1].square() + 0.2 * torch.randn(700)
train = DataLoader(TensorDataset(x[:500], y[:500]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(x[500:], y[500:]), batch_size=50)
net = nn.Sequential(nn.Linear(5, 40), nn.ReLU(), nn.Linear(40, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _epoch in range(10):
    net.train()
    for a, b in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(a), b).backward()
        optimizer.step()
net.eval()
predicted, measured = [], []
with torch.no_grad():
    for a, b in test:
        predicted.append(net(a))
        measured.append(b)
p, t = torch.cat(predicted), torch.cat(measured)
cross = (p[:, None] - t[None, :]).abs().mean()
inner = (t[:, None] - t[None, :]).abs().mean() + (p[:, None] - p[None, :]).abs().mean()
print(f"energy distance {2 * cross - inner:.4f}, mean error {(p - t).abs().mean():.4f}, bias {(p - t).mean():+.4f}")
