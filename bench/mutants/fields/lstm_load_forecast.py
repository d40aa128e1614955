"""Forecast an electrical load with spikes by an LSTM, gradients clipped."""

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

MAX_NORM = 0.5


def make_series(n, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    load = 2 * np.sin(2 * np.pi * t / 24) + 0.8 * np.sin(2 * np.pi * t / 168) + 0.15 * rng.normal(size=n)
    spikes = rng.random(n) < 0.01
    load[spikes] += rng.choice([-1, 1], spikes.sum()) * 25
    return load


def windows(series, length=24):
    x = np.lib.stride_tricks.sliding_window_view(series, length + 1)[::3]
    x = torch.tensor(x.copy(), dtype=torch.float32)
    return x[:, :-1].unsqueeze(-1), x[:, -1:]


class Forecaster(nn.Module):
    """LSTM over a day, linear layer on the last state."""

    def __init__(self, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def main():
    torch.manual_seed(10)
    series = make_series(3600, 10)
    cut = 2700
    mean, std = series[:cut].mean(), series[:cut].std()
    x_train, y_train = windows((series[:cut] - mean) / std)
    x_val, y_val = windows((series[cut:] - mean) / std)
    model = Forecaster()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    criterion = nn.MSELoss()
    for epoch in range(1, 13):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x_train)).split(30):
            optimizer.zero_grad()
            loss = criterion(model(x_train[idx]), y_train[idx])
            loss.backward()
            clip_grad_norm_(model.parameters(), MAX_NORM)
            optimizer.step()
            total += loss.item() * len(idx)
        if epoch % 3 == 0:
            model.eval()
            with torch.no_grad():
                error = (model(x_val) - y_val).abs().median().item()
            print(f"epoch {epoch} mse {total / len(x_train):.4f} median error {error:.4f}")


if __name__ == "__main__":
    main()
