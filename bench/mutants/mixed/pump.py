"""Fault detection on a pump with three sensors.

A small GRU forecasts the next reading (mean and variance); readings that it finds unlikely
are alarms. The alarm threshold is chosen on a labelled validation period.
"""
import copy

import numpy as np
import torch
import torch.nn as nn
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 24


class Plant:
    """Simulated recording with logged faults (label 1)."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def record(self, n, faults, start=0):
        t = np.arange(start, start + n)
        load = 1.0 + 0.6 * np.sin(2 * np.pi * t / 48) + 0.3 * np.sin(2 * np.pi * t / 11)
        flow = 20 * load + self._ar(n, 0.7, 0.8)
        pressure = 4 + 0.8 * load ** 2 + self._ar(n, 0.5, 0.06)
        heat = 60 + 9 * np.convolve(load, np.ones(6) / 6, mode="same") + self._ar(n, 0.9, 0.4)
        x = np.stack([flow, pressure, heat], axis=1) + 0.00005 * t[:, None] * np.array([20, 4, 9])   # slow wear
        y = np.zeros(n, int)
        for a in self.rng.integers(50, n - 50, faults):
            length, kind = self.rng.integers(4, 16), self.rng.integers(0, 3)
            s = slice(a, a + length)
            if kind == 0:
                x[s, 1] -= 0.9                                   # leak
            elif kind == 1:
                x[s, 2] += np.linspace(3, 12, length)           # overheating
            else:
                x[s, 0] += self.rng.normal(0, 7.0, length)       # loose sensor
            y[s] = 1
        return x, y

    def _ar(self, n, phi, scale):
        e, out = self.rng.normal(0, scale, n), np.zeros(n)
        for i in range(1, n):
            out[i] = phi * out[i - 1] + e[i]
        return out


class Scaler:
    def fit(self, x):
        self.mean, self.std = x.mean(axis=0), x.std(axis=0)
        return self

    def transform(self, x):
        return ((x - self.mean) / self.std).astype(np.float32)

    def fit_transform(self, x):
        return self.fit(x).transform(x)


def windows(x):
    """(n - WINDOW, WINDOW, 3) inputs and the reading after each."""
    idx = np.arange(len(x) - WINDOW)[:, None] + np.arange(WINDOW)
    return torch.from_numpy(x[idx]), torch.from_numpy(x[WINDOW:])


def healthy(y):
    """Windows without any fault in the inputs or in the target."""
    c = np.concatenate([[0], np.cumsum(y)])
    return torch.from_numpy(c[WINDOW + 1:] - c[:-WINDOW - 1] == 0)


class Forecaster(nn.Module):
    def __init__(self, channels=3, hidden=32):
        super().__init__()
        self.gru = nn.GRU(channels, hidden, batch_first=True)
        self.drop = nn.Dropout(0.15)
        self.mean = nn.Linear(hidden, channels)
        self.log_var = nn.Linear(hidden, channels)

    def forward(self, x):
        _, h = self.gru(x)
        h = self.drop(h[-1])
        return x[:, -1] + self.mean(h), self.log_var(h).clamp(-8, 4)


def nll(mean, log_var, target):
    return 0.5 * (log_var + (target - mean) ** 2 / log_var.exp()).mean()


class Detector:
    def __init__(self, epochs=16, lr=8e-3, patience=4):
        self.net = Forecaster()
        self.epochs, self.lr, self.patience = epochs, lr, patience

    def fit(self, train_set, val_set):
        opt = torch.optim.Adam(self.net.parameters(), lr=self.lr)
        sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
        loader = DataLoader(train_set, batch_size=128, shuffle=True)
        best, since, keep = float("inf"), 0, None
        for epoch in range(self.epochs):
            self.net.train()
            losses = []
            for x, y in loader:
                loss = nll(*self.net(x), y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                losses.append(loss.item())
            sched.step()
            self.net.eval()
            with torch.no_grad():
                val = nll(*self.net(val_set.tensors[0]), val_set.tensors[1]).item()
            print(f"epoch {epoch}  train {np.mean(losses):.4f}  val {val:.4f}")
            if val < best:
                best, since, keep = val, 0, copy.deepcopy(self.net.state_dict())
            else:
                since += 1
                if since >= self.patience:
                    break
        self.net.load_state_dict(keep)
        return self

    @torch.no_grad()
    def score(self, x):
        """One score for each reading from number WINDOW on: squared standardised error, smoothed."""
        self.net.eval()
        inputs, target = windows(x)
        mean, log_var = self.net(inputs)
        z = ((target - mean) ** 2 / log_var.exp()).mean(dim=1).numpy()
        return np.convolve(z, [0.2, 0.3, 0.5][::-1])[:len(z)]          # looks only back


def choose_threshold(score, y):
    grid = np.quantile(score, np.linspace(0.8, 0.999, 100))
    f1 = [precision_recall_fscore_support(y, score > t, average="binary", zero_division=0)[2] for t in grid]
    return grid[int(np.argmax(f1))], max(f1)


if __name__ == "__main__":
    torch.manual_seed(4)
    plant = Plant(seed=4)
    train_x, train_y = plant.record(2600, faults=20)
    val_x, val_y = plant.record(1400, faults=14, start=2600)
    test_x, test_y = plant.record(2000, faults=20, start=4000)
    scaler = Scaler().fit(train_x[train_y == 0])
    train_x, val_x, test_x = scaler.transform(train_x), scaler.transform(val_x), scaler.transform(test_x)
    parts = []
    for x, y in ((train_x, train_y), (val_x, val_y)):
        inputs, target = windows(x)
        ok = healthy(y)
        parts.append(TensorDataset(inputs[ok], target[ok]))
    detector = Detector().fit(*parts)
    threshold, val_f1 = choose_threshold(detector.score(val_x), val_y[WINDOW:])
    score, truth = detector.score(test_x), test_y[WINDOW:]
    alarm = score > threshold
    p, r, f1, _ = precision_recall_fscore_support(truth, alarm, average="binary")
    print(f"threshold {threshold:.4f} (val F1 {val_f1:.4f})")
    print(f"test AP {average_precision_score(truth, score):.4f} precision {p:.4f} recall {r:.4f} F1 {f1:.4f}")
