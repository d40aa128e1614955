"""The loader walks through a series in its order: its first dimension is time, as the LSTM takes it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
series = torch.sin(torch.linspace(0, 60, 600)).unsqueeze(1) + 0.1 * torch.randn(600, 5)
inputs, targets = series[:-1].unsqueeze(-1), series[1:]
train = DataLoader(TensorDataset(inputs[:480], targets[:480]), batch_size=24)
val = DataLoader(TensorDataset(inputs[480:], targets[480:]), batch_size=24)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 12)
        self.head = nn.Linear(12, 1)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.head(states).squeeze(-1)


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _epoch in range(3):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum(nn.functional.mse_loss(model(x), y).item() for x, y in val) / len(val))
