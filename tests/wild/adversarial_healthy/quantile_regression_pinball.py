"""Pinball loss, (N, Q) predictions against (N, 1) targets."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 3)
y = x[:, :1] + 0.3 * torch.randn(200, 1)
quantiles = torch.tensor([0.1, 0.5, 0.9])
model = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True):
        error = yb - model(xb)
        loss = torch.maximum(quantiles * error, (quantiles - 1) * error).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
