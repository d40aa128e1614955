"""A class scales the series for its training, and forecasts from the values as measured."""

import torch
from torch import nn


class Forecaster:
    def __init__(self, length=16):
        self.length, self.net = length, nn.GRU(1, 12, batch_first=True)
        self.head = nn.Linear(12, 1)
        self.both = nn.ModuleList([self.net, self.head])

    def windows(self, series):
        parts = series.unfold(0, self.length + 1, 1)
        return parts[:, :-1, None], parts[:, -1:]

    def fit(self, series, epochs=6):
        self.mean, self.std = series.mean(), series.std()
        x, y = self.windows((series - self.mean) / self.std)
        optimizer = torch.optim.Adam(self.both.parameters(), 1e-2)
        self.both.train()
        for _ in range(epochs):
            for part in torch.randperm(len(x)).split(32):
                loss = nn.functional.mse_loss(self.head(self.net(x[part])[0][:, -1]), y[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()

    def error(self, series):
        x, y = self.windows(series)
        self.both.eval()
        with torch.no_grad():
            states, _ = self.net(x)  # error: inputs-on-another-scale
            forecast = self.head(states[:, -1]) * self.std + self.mean
        return (forecast - y).abs().mean().item()


torch.manual_seed(0)
series = 60 + 3 * torch.sin(torch.arange(500.0) / 5) + 0.3 * torch.randn(500)
forecaster = Forecaster()
print(f"loss {forecaster.fit(series[:400]):.3f}, error {forecaster.error(series[400:]):.3f}")
