"""Powers of evenly spaced points have the range 0 to 1 in the training and in the test."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def powers(rows):
    x = torch.linspace(0, 1, rows)[:, None] ** torch.arange(1, 6)
    low, high = x.min(0).values, x.max(0).values
    return (x - low) / (high - low)


x_train, x_test = powers(200), powers(90)
y_train, y_test = torch.sin(6 * x_train[:, 0]), torch.sin(6 * x_test[:, 0])
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(150):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x_train)[:, 0], y_train)
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(f"{loss.item():.4f} {F.mse_loss(model(x_test)[:, 0], y_test).item():.4f}")
