"""A class computes a warm-up with a decay; the trainer steps it and logs its rate, and the optimizer keeps its own."""

import torch
from torch import nn


class WarmupDecay:
    def __init__(self, peak, warmup, total):
        self.peak, self.warmup, self.total = peak, warmup, total
        self.count, self.lr = 0, peak

    def step(self):
        self.count += 1
        rising = self.count / self.warmup
        falling = (self.total - self.count) / (self.total - self.warmup)
        self.lr = self.peak * min(rising, falling)  # error: learning-rate-off-course


torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
schedule = WarmupDecay(5e-3, 20, 180)
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(600).split(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 30:.3f}, rate {schedule.lr:.5f}")
