"""Forecasting by sliding windows: N-BEATS-like residual blocks, scaling by the training part, chronological split, backtest at the end."""
import math

import torch
import torch.nn as nn

LOOKBACK, HORIZON = 24, 6


class Block(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LOOKBACK, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.backcast, self.forecast = nn.Linear(width, LOOKBACK), nn.Linear(width, HORIZON)

    def forward(self, x):
        h = self.body(x)
        return self.backcast(h), self.forecast(h)


class Forecaster(nn.Module):
    def __init__(self, blocks=3):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    def forward(self, x):
        total = 0.0
        for block in self.blocks:
            back, ahead = block(x)
            x, total = x - back, total + ahead
        return total


def make_series(n=900):
    t = torch.arange(n, dtype=torch.float32)
    return 0.01 * t + 2 * torch.sin(2 * math.pi * t / 24) + torch.sin(2 * math.pi * t / 7) + 0.3 * torch.randn(n)


def windows(series):
    cut = series.unfold(0, LOOKBACK + HORIZON, 1)
    return cut[:, :LOOKBACK], cut[:, LOOKBACK:]


def mae(prediction, target):
    return (prediction - target).abs().mean()


torch.manual_seed(0)
series = make_series()
mean, std = series[:600].mean(), series[:600].std()
scaled = (series - mean) / std
x_train, y_train = windows(scaled[:600])
x_valid, y_valid = windows(scaled[600 - LOOKBACK:750])
x_test, y_test = windows(scaled[750 - LOOKBACK:])
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
for epoch in range(16):
    model.train()
    for index in torch.randperm(len(x_train)).split(64):
        optimizer.zero_grad()
        loss = mae(model(x_train[index]), y_train[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        valid = mae(model(x_valid), y_valid).item()
    plateau.step(valid)
    if epoch % 5 == 0:
        print(f"epoch {epoch} train {loss.item():.3f} validation {valid:.3f} rate {optimizer.param_groups[0]['lr']:.1e}")
with torch.no_grad():
    naive = x_test[:, -24:][:, :HORIZON]
    print(f"test {(mae(model(x_test), y_test) * std).item():.3f}, seasonal naive {(mae(naive, y_test) * std).item():.3f}")
