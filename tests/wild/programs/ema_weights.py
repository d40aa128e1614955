"""Healthy: exponential moving average of the weights in a deep copy that never requires grad and is evaluated."""
from copy import deepcopy

import torch
import torch.nn as nn


class ModelEma(nn.Module):
    def __init__(self, model, decay=0.99):
        super().__init__()
        self.module = deepcopy(model)
        self.module.eval()
        self.decay = decay
        for p in self.module.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for ema_v, model_v in zip(self.module.state_dict().values(), model.state_dict().values()):
            if ema_v.dtype.is_floating_point:
                ema_v.copy_(self.decay * ema_v + (1.0 - self.decay) * model_v)
            else:
                ema_v.copy_(model_v)

    def forward(self, x):
        return self.module(x)


torch.manual_seed(0)
torch.set_num_threads(1)

freqs = torch.randn(6, 1)
x_train = torch.randn(1024, 6)
x_val = torch.randn(256, 6)
f = lambda x: torch.cos(x @ freqs / 2)
y_train = f(x_train) + 0.2 * torch.randn(1024, 1)
y_val = f(x_val)

model = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.SiLU(), nn.Linear(64, 1))
ema = ModelEma(model, decay=0.95)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(8):
    model.train()
    for idx in torch.randperm(1024).split(64):
        loss = criterion(model(x_train[idx]), y_train[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)

    model.eval()
    with torch.no_grad():
        raw = criterion(model(x_val), y_val).item()
        avg = criterion(ema(x_val), y_val).item()
    print(f"epoch {epoch}: val mse raw {raw:.4f}, ema {avg:.4f}")
