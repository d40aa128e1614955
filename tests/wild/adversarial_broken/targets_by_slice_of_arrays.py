"""NumPy arrays in a class: inputs by a permutation, targets by a slice."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
torch.manual_seed(0)


class Learner:
    def __init__(self, width):
        self.net = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)

    def fit(self, x, y, epochs=4, size=32):
        for _ in range(epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x), size):
                chosen = order[start : start + size]
                inputs = torch.as_tensor(x[chosen], dtype=torch.float32)
                targets = torch.as_tensor(y[start : start + size], dtype=torch.float32)
                self.optimizer.zero_grad()
                loss = nn.functional.mse_loss(self.net(inputs), targets)  # error: targets-of-other-samples
                loss.backward()
                self.optimizer.step()


features = rng.normal(size=(256, 6))
values = features @ rng.normal(size=(6, 1)) + 0.1 * rng.normal(size=(256, 1))
Learner(6).fit(features, values)
