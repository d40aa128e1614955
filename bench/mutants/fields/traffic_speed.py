"""Forecast the speed at twelve road sensors one step ahead; a reading of zero means that the sensor was silent."""

import argparse

import numpy as np
import torch
from torch import nn


def masked_mae(pred, target, null_val=float("nan")):
    if np.isnan(null_val):
        mask = ~torch.isnan(target)
    else:
        mask = target != null_val
    mask = mask.float()
    mask = mask / mask.mean()
    loss = torch.abs(pred - target) * mask
    return torch.nan_to_num(loss).mean()


def load(seed, steps=1500, sensors=12):
    rng = np.random.default_rng(seed)
    t = np.arange(steps)[:, None]
    phase = rng.uniform(0, 2 * np.pi, sensors)[None]
    speed = (
        55
        + 12 * np.sin(2 * np.pi * t / 96 + phase)
        + 6 * np.sin(2 * np.pi * t / 24 + phase)
        + rng.normal(0, 1.0, (steps, sensors))
    )
    speed[rng.random(speed.shape) < 0.15] = 0.0
    return speed.astype(np.float32)


class Net(nn.Module):
    """MLP over the last readings of all sensors."""

    def __init__(self, sensors, history, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(2 * sensors * history, hidden), nn.ReLU(), nn.Linear(hidden, sensors)
        )

    def forward(self, x):
        return self.body(x)


def windows(z, observed, raw, history):
    x = np.stack([np.stack([z[i : i + history], observed[i : i + history]]) for i in range(len(z) - history)])
    return torch.from_numpy(x), torch.from_numpy(raw[history:])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--history", type=int, default=8)
    p.add_argument("--epochs", type=int, default=25)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--null_value", type=float, default=0.0)
    args = p.parse_args([])
    torch.manual_seed(7)

    raw = load(7)
    n_train = 1100
    seen = raw[:n_train][raw[:n_train] != 0]
    mean, std = seen.mean(), seen.std()
    observed = (raw != 0).astype(np.float32)
    z = (raw - mean) / std * observed
    x_tr, y_tr = windows(z[:n_train], observed[:n_train], raw[:n_train], args.history)
    x_te, y_te = windows(z[n_train:], observed[n_train:], raw[n_train:], args.history)

    model = Net(raw.shape[1], args.history, 64)
    optim = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        losses = []
        for idx in torch.randperm(len(x_tr)).split(64):
            pred = model(x_tr[idx]) * std + mean
            loss = masked_mae(pred, y_tr[idx], args.null_value)
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            test = masked_mae(model(x_te) * std + mean, y_te, args.null_value).item()
        if epoch % 4 == 0:
            print(f"epoch {epoch:2d} train MAE {np.mean(losses):.3f} test MAE {test:.3f}")


if __name__ == "__main__":
    main()
