"""Yields of fields: predictions are collected as columns, measurements as rows, and the difference has all pairs."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
soil = torch.randn(800, 5)
yields = 3 + soil[:, 0] - 0.5 * soil[:, 1] * soil[:, 2] + 0.1 * torch.randn(800)
train = DataLoader(TensorDataset(soil[:600], yields[:600]), batch_size=40, shuffle=True)
held = DataLoader(TensorDataset(soil[600:], yields[600:]), batch_size=40)


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(5, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=5e-3)

    def epoch(self):
        self.net.train()
        for x, y in train:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.net(x), y[:, None]).backward()
            self.optimizer.step()

    @torch.no_grad()
    def error(self):
        self.net.eval()
        predicted, measured = [], []
        for x, y in held:
            predicted.append(self.net(x).numpy())
            measured.append(y.numpy())
        predicted, measured = np.concatenate(predicted), np.concatenate(measured)
        return np.abs(predicted - measured).mean()  # error: metric-off-target


trainer = Trainer()
for _ in range(12):
    trainer.epoch()
print(f"mean error {trainer.error():.3f}")
