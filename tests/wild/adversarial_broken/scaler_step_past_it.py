"""Broken: a trainer that scales the loss and lets the optimizer step by itself."""
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    def fit(self, x, y, steps):
        for _ in range(steps):
            self.optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.mse_loss(self.model(x).float(), y)
            self.scaler.scale(loss).backward()
            self.optimizer.step()  # error: scaler-misused


torch.manual_seed(0)
torch.set_num_threads(1)
data = torch.randn(64, 4)
Trainer(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))).fit(data, data[:, :1], 30)
