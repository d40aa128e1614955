"""LSTM that predicts tomorrow's value of a noisy seasonal series from the last twenty days."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(123)
np.random.seed(123)

LOOKBACK = 20
days = np.arange(900)
series = np.zeros(len(days))
for d in range(1, len(days)):
    series[d] = 0.6 * series[d - 1] + np.sin(2 * np.pi * d / 30) + np.random.normal(0, 0.7)

split = 700
mu, sigma = series[:split].mean(), series[:split].std()
scaled = ((series - mu) / sigma).astype(np.float32)


class WindowDataset(Dataset):
    """A window of the past and the value of the day after it."""

    def __init__(self, values, lookback):
        self.values = torch.from_numpy(values)
        self.lookback = lookback

    def __len__(self):
        return len(self.values) - self.lookback

    def __getitem__(self, i):
        window = self.values[i : i + self.lookback]
        target = self.values[i + self.lookback]
        return window.unsqueeze(-1), target


class Forecaster(nn.Module):
    """LSTM and a linear layer."""

    def __init__(self, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        return self.fc(h[-1]).squeeze(-1)


train_loader = DataLoader(WindowDataset(scaled[:split], LOOKBACK), batch_size=32, shuffle=True)
test_loader = DataLoader(WindowDataset(scaled[split:], LOOKBACK), batch_size=64, shuffle=False)
model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(10):
    model.train()
    epoch_losses = []
    for window, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(window), target)
        loss.backward()
        optimizer.step()
        epoch_losses.append(loss.item())
    print(f"Epoch [{epoch + 1}/10], Loss: {np.mean(epoch_losses):.4f}")

model.eval()
preds, actual = [], []
with torch.no_grad():
    for window, target in test_loader:
        preds.append(model(window))
        actual.append(target)
preds = torch.cat(preds).numpy() * sigma + mu
actual = torch.cat(actual).numpy() * sigma + mu
print("Test RMSE:", round(float(np.sqrt(((preds - actual) ** 2).mean())), 4))
print("Test correlation:", round(float(np.corrcoef(preds, actual)[0, 1]), 4))
