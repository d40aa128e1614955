"""Hourly bike rentals as counts, Poisson likelihood with softplus rates."""

import numpy as np
import torch
from torch import nn
from torch.optim import SGD

rng = np.random.default_rng(33)
torch.manual_seed(33)


def simulate(n):
    hour = rng.integers(0, 24, n)
    temp = rng.normal(15, 7, n)
    rain = rng.random(n) < 0.25
    rate = 1.0 + 6 * np.exp(-((hour - 17) ** 2) / 8) + 4 * np.exp(-((hour - 8) ** 2) / 4) + 0.08 * np.clip(temp, 0, 30)
    rate = rate * np.where(rain, 0.5, 1.0)
    angle = 2 * np.pi * hour / 24
    x = np.stack([np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle), (temp - 15) / 7, rain], axis=1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(rng.poisson(rate), dtype=torch.float32)


x_train, y_train = simulate(2000)
x_test, y_test = simulate(800)

model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1), nn.Softplus())
criterion = nn.PoissonNLLLoss(log_input=False)
optimizer = SGD(model.parameters(), lr=0.01, momentum=0.9)


def train_one_epoch():
    model.train()
    total = 0.0
    for batch in torch.randperm(len(x_train)).split(250):
        rate = model(x_train[batch]).squeeze(1)
        loss = criterion(rate, y_train[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    return total / len(x_train)


def report():
    model.eval()
    with torch.no_grad():
        rate = model(x_test).squeeze(1)
        return (rate - y_test).abs().mean().item(), rate.mean().item()


for epoch in range(1, 31):
    train_loss = train_one_epoch()
    if epoch % 6 == 0:
        mae, mean_rate = report()
        print(f"epoch {epoch} poisson nll {train_loss:.4f} test mae {mae:.4f}")
print(f"mean predicted {mean_rate:.3f}, mean observed {y_test.mean():.3f}")
