"""Multivariate forecasting: an LSTM encoder over sliding windows, several steps ahead.

Four coupled sensors, sampled hourly. We read the last WINDOW hours and
predict the next HORIZON hours of every sensor.
"""
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 36
HORIZON = 6
BATCH = 64
EPOCHS = 10
LR = 4e-3


def make_series(n=1800, seed=3):
    rng = np.random.default_rng(seed)
    t = np.arange(n)
    day = np.sin(2 * np.pi * t / 24)
    week = np.sin(2 * np.pi * t / 168)
    ar = np.zeros(n)
    for i in range(1, n):
        ar[i] = 0.92 * ar[i - 1] + rng.normal(0, 0.25)
    temperature = 15 + 6 * day + 2 * week + 1.2 * ar + 0.001 * t
    load = 220 + 40 * np.roll(day, 5) - 12 * week + 9 * np.roll(ar, 3) + rng.normal(0, 2, n)
    humidity = 0.6 - 0.12 * day + 0.03 * np.roll(ar, 1) + rng.normal(0, 0.01, n)
    price = 50 + 0.12 * np.roll(load - 220, 2) + rng.normal(0, 0.8, n)
    return np.stack([temperature, load, humidity, price], axis=1).astype(np.float32)


def split_by_time(series, train=0.7, val=0.15):
    n = len(series)
    a, b = int(n * train), int(n * (train + val))
    # validation and test start WINDOW steps early: that is their first input only
    return series[:a], series[a - WINDOW:b], series[b - WINDOW:]


def make_windows(series):
    xs, ys = [], []
    for i in range(len(series) - WINDOW - HORIZON + 1):
        xs.append(series[i:i + WINDOW])
        ys.append(series[i + WINDOW:i + WINDOW + HORIZON])
    return torch.from_numpy(np.stack(xs)), torch.from_numpy(np.stack(ys))


class Forecaster(nn.Module):
    def __init__(self, channels, hidden=48, dropout=0.1):
        super().__init__()
        self.channels = channels
        self.rnn = nn.LSTM(channels, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.drop = nn.Dropout(dropout)
        self.head = nn.Linear(hidden, HORIZON * channels)

    def forward(self, x):
        out, _ = self.rnn(x)
        last = self.drop(self.norm(out[:, -1]))
        delta = self.head(last).view(-1, HORIZON, self.channels)
        # predict the change with respect to the last observed value
        return x[:, -1:, :] + delta


def train_epoch(model, loader, optimizer, scheduler, loss_fn):
    model.train()
    total, count = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(x)
        count += len(x)
    return total / count


@torch.no_grad()
def predict(model, loader):
    model.eval()
    preds, targets = [], []
    for x, y in loader:
        preds.append(model(x))
        targets.append(y)
    return torch.cat(preds), torch.cat(targets)


def main():
    torch.manual_seed(0)
    series = make_series()
    train_raw, val_raw, test_raw = split_by_time(series)

    mean = train_raw.mean(axis=0)
    std = train_raw.std(axis=0)
    sets = []
    for raw in (train_raw, val_raw, test_raw):
        sets.append(TensorDataset(*make_windows((raw - mean) / std)))
    train_loader = DataLoader(sets[0], batch_size=BATCH, shuffle=True)
    val_loader = DataLoader(sets[1], batch_size=256)
    test_loader = DataLoader(sets[2], batch_size=256)

    model = Forecaster(series.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-3)
    steps = EPOCHS * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LR, total_steps=steps)
    loss_fn = nn.SmoothL1Loss()

    best_val, best_state = math.inf, None
    for epoch in range(EPOCHS):
        train_loss = train_epoch(model, train_loader, optimizer, scheduler, loss_fn)
        p, y = predict(model, val_loader)
        val_loss = loss_fn(p, y).item()
        if val_loss < best_val:
            best_val = val_loss
            best_state = {k: v.clone() for k, v in model.state_dict().items()}
        print(f"epoch {epoch:2d} train {train_loss:.5f} val {val_loss:.5f}")

    model.load_state_dict(best_state)
    p, y = predict(model, test_loader)
    scale = torch.from_numpy(std)
    offset = torch.from_numpy(mean)
    p, y = p * scale + offset, y * scale + offset
    mae = (p - y).abs().mean(dim=(0, 1))

    # the seasonal naive forecast: the same hour yesterday
    x_test = sets[2].tensors[0] * scale + offset
    naive = x_test[:, WINDOW - 24:WINDOW - 24 + HORIZON]
    naive_mae = (naive - y).abs().mean(dim=(0, 1))
    names = ["temperature", "load", "humidity", "price"]
    for name, m, nm in zip(names, mae.tolist(), naive_mae.tolist()):
        print(f"test MAE {name:12s} {m:.5f} (seasonal naive {nm:.5f})")
    print(f"skill over naive: {1 - (mae / naive_mae).mean().item():.5f}")


if __name__ == "__main__":
    main()
