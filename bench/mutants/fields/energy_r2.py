"""Estimate energy demand from weather with a small net; report R2 and error in the original unit."""

import numpy as np
import torch
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.preprocessing import StandardScaler
from torch import nn


def weather(n, seed):
    rng = np.random.default_rng(seed)
    temperature = rng.normal(12, 8, n)
    wind, sun = rng.gamma(2, 2, n), rng.random(n)
    holiday = (rng.random(n) < 0.1).astype(float)
    demand = 300 + 2.5 * np.abs(temperature - 18) ** 1.2 + 3 * wind - 20 * sun - 40 * holiday + rng.normal(0, 35, n)
    return np.column_stack([temperature, wind, sun, holiday]), demand.reshape(-1, 1)


def train_model(x, y, epochs=16, batch_size=40):
    model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)
    loss_fn = nn.SmoothL1Loss()
    n = x.shape[0]
    for epoch in range(epochs):
        model.train()
        order = torch.randperm(n)
        total = 0.0
        for start in range(0, n, batch_size):
            idx = order[start : start + batch_size]
            optimizer.zero_grad()
            loss = loss_fn(model(x[idx]), y[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        scheduler.step()
        if epoch % 5 == 0:
            print(f"epoch {epoch:2d} train loss {total / n:.4f}")
    return model


torch.manual_seed(27)
x_train, y_train = weather(800, 27)
x_test, y_test = weather(300, 28)
x_scaler, y_scaler = StandardScaler().fit(x_train), StandardScaler().fit(y_train)
model = train_model(
    torch.tensor(x_scaler.transform(x_train), dtype=torch.float32),
    torch.tensor(y_scaler.transform(y_train), dtype=torch.float32),
)

model.eval()
with torch.no_grad():
    y_pred = model(torch.tensor(x_scaler.transform(x_test), dtype=torch.float32)).numpy()
y_pred = y_scaler.inverse_transform(y_pred)
print(f"R2 score: {r2_score(y_test, y_pred):.4f}")
print(f"MAE: {mean_absolute_error(y_test, y_pred):.2f} MWh")
