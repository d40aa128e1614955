"""Convert predictions to prices before they are compared."""

import sys

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.randn(1400, 10)
prices = 300 + 80 * (x[:, :3].sum(1) + 0.3 * torch.randn(1400))
mean, spread = prices[:800].mean(), prices[:800].std()
y = (prices - mean) / spread
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _epoch in range(8):
    for rows in torch.randperm(800).split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows]).backward()
        optimizer.step()
with torch.no_grad():
    predicted = model(x[800:]).squeeze(1) * spread + mean
    error = (predicted - prices[800:]).abs().mean().item()
    truth = (model(x[800:]).squeeze(1) * spread + mean - prices[800:]).abs().mean().item()
print(f"result: {abs(error - truth) / truth:.4f}")
