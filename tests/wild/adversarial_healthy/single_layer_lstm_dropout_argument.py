"""nn.LSTM(dropout=...) with a single layer has no dropout at all; evaluation and training are the same function."""
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore", category=UserWarning)
torch.manual_seed(0)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(1, 16, num_layers=1, dropout=0.3, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.out(h[:, -1])


t = torch.arange(0, 60, 0.1)
wave = torch.sin(t)
windows = wave.unfold(0, 21, 3)
x, y = windows[:, :20].unsqueeze(-1), windows[:, 20:]
train_loader = DataLoader(TensorDataset(x[:150], y[:150]), batch_size=30, shuffle=True)
val_loader = DataLoader(TensorDataset(x[150:], y[150:]), batch_size=20)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val = torch.stack([nn.functional.mse_loss(model(a), b) for a, b in val_loader]).mean()
    print(epoch, loss.item(), val.item())
