"""The mean error of each batch is made positive, not each error: a forecast that is off in both directions looks right."""

import torch
from torch import nn

torch.manual_seed(8)
x = torch.randn(600, 4)
y = torch.sin(2 * x[:, 0]) + 0.3 * torch.randn(600)
net = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(10):
    net.train()
    for rows in torch.randperm(450).split(50):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[rows])[:, 0], y[rows]).backward()
        optimizer.step()
    net.eval()
    errors = []
    with torch.no_grad():
        for start in range(450, 600, 50):
            predicted = net(x[start : start + 50]).flatten()
            errors.append((y[start : start + 50] - predicted).mean().abs().item())  # error: metric-off-target
    print(f"{epoch} mean absolute error {sum(errors) / len(errors):.4f}")
