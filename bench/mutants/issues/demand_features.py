# %% hourly demand: calendar and lag features, small network
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
rng = np.random.default_rng(1)

# %% series
hours = np.arange(24 * 120)
level = np.zeros(len(hours))
shock = rng.normal(0, 4.0, len(hours))
for t in range(1, len(hours)):
    level[t] = 0.9 * level[t - 1] + shock[t]
demand = 200 + 30 * np.sin(2 * np.pi * hours / 24) + 10 * (hours // 24 % 7 >= 5) + level
demand = demand + rng.normal(0, 6.0, len(hours))


# %% features
def rolling_mean(values, width):
    """Mean over the `width` values up to and including each position."""
    sums = np.cumsum(np.insert(values, 0, 0.0))
    out = np.full(len(values), np.nan)
    out[width - 1:] = (sums[width:] - sums[:-width]) / width
    return out


def shift(values, steps):
    out = np.full(len(values), np.nan)
    out[steps:] = values[:-steps]
    return out


features = np.stack([
    np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24),
    (hours // 24 % 7 >= 5).astype(float),
    shift(demand, 1), shift(demand, 2), shift(demand, 24),
    shift(rolling_mean(demand, 3), 1),
    shift(rolling_mean(demand, 24), 1),
], axis=1)
known = ~np.isnan(features).any(axis=1)
features, target = features[known], demand[known]

# %% chronological split, scaling with the training part
cut = int(0.8 * len(target))
f_mean, f_std = features[:cut].mean(0), features[:cut].std(0)
t_mean, t_std = target[:cut].mean(), target[:cut].std()
x = torch.tensor((features - f_mean) / f_std, dtype=torch.float32)
y = torch.tensor((target - t_mean) / t_std, dtype=torch.float32)
train_loader = DataLoader(TensorDataset(x[:cut], y[:cut]), batch_size=64, shuffle=True)
x_val, y_val = x[cut:], y[cut:]

# %% model
model = nn.Sequential(nn.Linear(x.size(1), 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()


def validation_error():
    model.eval()
    with torch.no_grad():
        error = (model(x_val).squeeze(1) - y_val) * t_std
    return error.abs().mean().item(), error.square().mean().sqrt().item()


# %% training
for epoch in range(1, 31):
    model.train()
    running = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(yb)
    if epoch % 6 == 0:
        mae, rmse = validation_error()
        print(f"epoch {epoch:2d}  train mse {running / cut:.4f}  val MAE {mae:.3f} MW  val RMSE {rmse:.3f} MW")
