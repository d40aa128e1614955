"""Prices of houses: a flat script, arrays of numpy, standardised targets, best weights kept, errors in units."""

import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
rng = np.random.default_rng(0)
rows = 1200
area = rng.lognormal(4.5, 0.4, rows)
age = rng.uniform(0, 90, rows)
rooms = rng.integers(1, 8, rows)
district = rng.integers(0, 6, rows)
level = np.array([0.6, 0.8, 1.0, 1.2, 1.5, 2.1])[district]
price = 900 * area * level * (1 - 0.004 * age) + 6000 * rooms + rng.normal(0, 9000, rows)
table = np.column_stack([area, age, rooms, *(district == d for d in range(6))]).astype(np.float32)
order = rng.permutation(rows)
train, valid, test = order[:800], order[800:1000], order[1000:]

x_mean, x_std = table[train].mean(0), table[train].std(0)
y_mean, y_std = price[train].mean(), price[train].std()
x = torch.from_numpy((table - x_mean) / x_std).float()
y = torch.from_numpy((price - y_mean) / y_std).float().unsqueeze(1)

model = nn.Sequential(nn.Linear(9, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
loss_fn = nn.MSELoss()
best_rmse, best_state = float("inf"), None
for epoch in range(30):
    model.train()
    shuffled = torch.randperm(len(train))
    for start in range(0, len(train), 50):
        chosen = train[shuffled[start : start + 50].numpy()]
        optimizer.zero_grad()
        loss = loss_fn(model(x[chosen]), y[chosen])
        loss.backward()
        optimizer.step()

    model.eval()
    squared, seen = 0.0, 0
    with torch.no_grad():
        for start in range(0, len(valid), 64):
            chosen = valid[start : start + 64]
            out = model(x[chosen])
            squared += ((out - y[chosen]) ** 2).sum().item()
            seen += len(chosen)
    rmse = (squared / seen) ** 0.5
    if rmse < best_rmse:
        best_rmse = rmse
        best_state = copy.deepcopy(model.state_dict())

model.load_state_dict(best_state)
model.eval()
with torch.no_grad():
    predicted = model(x[test]).squeeze(1).numpy() * y_std + y_mean
actual = price[test]
mae = np.abs(predicted - actual).mean()
rmse = np.sqrt(((predicted - actual) ** 2).mean())
r2 = 1 - ((actual - predicted) ** 2).sum() / ((actual - actual.mean()) ** 2).sum()
mape = (np.abs(predicted - actual) / actual).mean() * 100
print(f"validation rmse {best_rmse:.4f}")
print(f"test mae {mae:.0f} rmse {rmse:.0f} r2 {r2:.4f} mape {mape:.1f}")
