"""A forecast from windows of a series: the target is the last value of the window, not the value after it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

LENGTH = 12


class Windows(Dataset):
    def __init__(self, count):
        self.series = torch.sin(torch.arange(count) * 0.1) + 0.3 * torch.randn(count)

    def __len__(self):
        return len(self.series) - LENGTH

    def __getitem__(self, start):
        window = self.series[start : start + LENGTH]
        return window.unsqueeze(1), self.series[start + LENGTH - 1]  # error: target-in-input


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, windows):
        return self.head(self.gru(windows)[0][:, -1]).squeeze(-1)


torch.manual_seed(0)
model = Forecast()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for windows, values in DataLoader(Windows(700), batch_size=32, shuffle=True):
        loss = nn.functional.mse_loss(model(windows), values)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
