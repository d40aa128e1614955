"""Forecast a drifting sensor signal several steps ahead with an MLP."""
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset


@dataclass
class Config:
    length: int = 1500
    window: int = 20
    horizon: int = 10
    train_share: float = 0.75
    batch_size: int = 32
    epochs: int = 20
    lr: float = 2e-3
    seed: int = 3


class WindowDataset(Dataset):
    def __init__(self, series, window, horizon):
        self.series = torch.tensor(series, dtype=torch.float32)
        self.window = window
        self.horizon = horizon

    def __len__(self):
        return len(self.series) - self.window - self.horizon + 1

    def __getitem__(self, i):
        past = self.series[i:i + self.window]
        future = self.series[i + self.window + self.horizon - 1]
        return past, future


def make_signal(cfg):
    rng = np.random.default_rng(cfg.seed)
    walk = np.cumsum(rng.normal(0, 1.0, cfg.length))
    season = 3 * np.sin(2 * np.pi * np.arange(cfg.length) / 48)
    return walk + season


def split_windows(dataset, cfg):
    n = len(dataset)
    cut = int(n * cfg.train_share)
    gap = cfg.window + cfg.horizon
    return Subset(dataset, range(cut)), Subset(dataset, range(cut + gap, n))


def mae(model, loader):
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for past, future in loader:
            total += (model(past).squeeze(1) - future).abs().sum().item()
            count += len(future)
    return total / count


def main():
    cfg = Config()
    torch.manual_seed(cfg.seed)
    signal = make_signal(cfg)
    head = signal[:int(len(signal) * cfg.train_share)]
    mean, std = head.mean(), head.std()
    dataset = WindowDataset((signal - mean) / std, cfg.window, cfg.horizon)
    train_set, val_set = split_windows(dataset, cfg)
    train_loader = DataLoader(train_set, batch_size=cfg.batch_size, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = nn.Sequential(nn.Linear(cfg.window, 128), nn.ReLU(),
                          nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loss_fn = nn.MSELoss()
    for epoch in range(1, cfg.epochs + 1):
        model.train()
        running = 0.0
        for past, future in train_loader:
            optimizer.zero_grad()
            loss = loss_fn(model(past).squeeze(1), future)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(future)
        if epoch % 5 == 0:
            print(f"epoch {epoch:3d}  train loss {running / len(train_set):.4f}  "
                  f"val MAE {mae(model, val_loader) * std:.3f} units")
    print(f"{len(train_set)} training windows, {len(val_set)} validation windows")


if __name__ == "__main__":
    main()
