"""Predict a mean and a variance per point with the Gaussian likelihood."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)


def sample(n):
    x = torch.rand(n, 1) * 6 - 3
    sigma = 0.1 + 0.8 * torch.sigmoid(2 * x)
    y = torch.sin(1.5 * x) + sigma * torch.randn(n, 1)
    return x, y, sigma


class MeanVariance(nn.Module):
    """Two heads on one body."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.mean = nn.Linear(40, 1)
        self.raw_std = nn.Linear(40, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), nn.functional.softplus(self.raw_std(h)) + 1e-3


x_train, y_train, _ = sample(1500)
x_test, y_test, sigma_test = sample(1000)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=100, shuffle=True)
model = MeanVariance()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.GaussianNLLLoss()

for epoch in range(1, 41):
    model.train()
    total = 0.0
    for xb, yb in loader:
        mean, std = model(xb)
        loss = criterion(mean, yb, std**2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb)
    if epoch % 10 == 0:
        print(f"epoch {epoch} nll {total / len(x_train):.4f}")

model.eval()
with torch.no_grad():
    mean, std = model(x_test)
    inside = ((y_test - mean).abs() < 1.96 * std).float().mean()
    print(f"test rmse {(mean - y_test).pow(2).mean().sqrt():.4f}")
    print(f"coverage of the 95% interval {inside:.4f}")
    print(f"mean error of the standard deviation {(std - sigma_test).abs().mean():.4f}")
