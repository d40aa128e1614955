"""Multi-step forecasting of a trending hourly load series with an MLP on sliding windows."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sklearn.preprocessing import StandardScaler

np.random.seed(11)
torch.manual_seed(11)

LOOKBACK = 48
HORIZON = 12


def load_series(n=3000):
    t = np.arange(n)
    daily = np.sin(2 * np.pi * t / 24)
    weekly = 0.5 * np.sin(2 * np.pi * t / 168)
    growth = 0.002 * t + 1.5 * (t / n) ** 3
    noise = 0.15 * np.random.randn(n)
    return (20 + (3 + growth) * daily + weekly + growth + noise).astype(np.float32)


def windows(series):
    xs, ys = [], []
    for i in range(len(series) - LOOKBACK - HORIZON + 1):
        xs.append(series[i:i + LOOKBACK])
        ys.append(series[i + LOOKBACK:i + LOOKBACK + HORIZON])
    return torch.tensor(np.array(xs)), torch.tensor(np.array(ys))


series = load_series()
n_train = int(0.7 * len(series))
n_val = int(0.15 * len(series))

scaler = StandardScaler()
scaler.fit(series[:n_train].reshape(-1, 1))
scaled = scaler.transform(series.reshape(-1, 1)).ravel().astype(np.float32)

train_x, train_y = windows(scaled[:n_train])
val_x, val_y = windows(scaled[n_train - LOOKBACK:n_train + n_val])
test_x, test_y = windows(scaled[n_train + n_val - LOOKBACK:])
train_loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=256)
test_loader = DataLoader(TensorDataset(test_x, test_y), batch_size=256)

model = nn.Sequential(
    nn.Linear(LOOKBACK, 64), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, HORIZON),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()


def evaluate(loader):
    model.eval()
    squared, absolute, count = 0.0, 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            err = model(x) - y
            squared += err.pow(2).sum().item()
            absolute += err.abs().sum().item()
            count += err.numel()
    return squared / count, absolute / count


best_val, best_state = float("inf"), None
for epoch in range(1, 11):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    val_mse, val_mae = evaluate(val_loader)
    if val_mse < best_val:
        best_val = val_mse
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
    print(f"epoch {epoch:2d}  val mse {val_mse:.4f}  mae {val_mae:.4f}")

model.load_state_dict(best_state)
test_mse, test_mae = evaluate(test_loader)
print(f"test (standardised units)  mse {test_mse:.4f}  mae {test_mae:.4f}")
