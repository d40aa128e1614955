"""Healthy: forecasting without shuffling: windows in order of time, scaled by the past only, models refitted at a rolling origin."""
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)
torch.set_num_threads(1)

dates = pd.date_range("2020-01-01", periods=420, freq="D")
t = np.arange(420)
df = pd.DataFrame({"y": 10 + 0.01 * t + 2 * np.sin(2 * np.pi * t / 7) + np.sin(2 * np.pi * t / 30) + 0.3 * np.random.randn(420)}, index=dates)
df["dow"] = df.index.day_of_week / 6 - 0.5


def create_sequences(frame, lookback, horizon):
    values = frame.to_numpy(dtype=np.float32)
    count = len(values) - lookback - horizon + 1
    X = np.stack([values[i:i + lookback] for i in range(count)])
    y = np.stack([values[i + lookback:i + lookback + horizon, 0] for i in range(count)])
    return torch.from_numpy(X), torch.from_numpy(y)


class TCN(nn.Module):
    """Dilated causal convolutions; the last time step forecasts the whole horizon."""

    def __init__(self, channels=2, hidden=16, horizon=7, levels=3):
        super().__init__()
        self.convs = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(channels if i == 0 else hidden, hidden, 3, dilation=2**i)) for i in range(levels))
        self.fc, self.dropout = nn.Linear(hidden, horizon), nn.Dropout(0.1)

    def forward(self, x):
        x = x.transpose(1, 2)
        for i, conv in enumerate(self.convs):
            y = self.dropout(torch.relu(conv(nn.functional.pad(x, (2 * 2**i, 0)))))
            x = y + x if y.shape == x.shape else y
        return self.fc(x[:, :, -1])


results = []
for origin in (280, 330, 380):
    history, future = df.iloc[:origin], df.iloc[origin - 28:origin + 40]
    mean, std = history["y"].mean(), history["y"].std()
    scaled = lambda frame: frame.assign(y=(frame["y"] - mean) / std)
    X_train, y_train = create_sequences(scaled(history), 28, 7)
    X_test, y_test = create_sequences(scaled(future), 28, 7)
    loader = DataLoader(TensorDataset(X_train, y_train), batch_size=32, shuffle=False)
    model, loss_fn = TCN(), nn.HuberLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(8):
        model.train()
        for X_batch, y_batch in loader:
            y_pred = model(X_batch)
            loss = loss_fn(y_pred, y_batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        rmse = float(((model(X_test) - y_test) ** 2).mean().sqrt() * std)
        naive = float(((X_test[:, -7:, 0] - y_test) ** 2).mean().sqrt() * std)
    results.append((rmse, naive))
    print(f"origin {df.index[origin].date()}: rmse {rmse:.3f}, last week repeated {naive:.3f}")
