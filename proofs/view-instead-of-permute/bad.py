"""Predict the sign of the only peak in a sequence, which the last time step alone does not show."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x, y, where = 0.5 * torch.randn(900, 8, 3), torch.randint(0, 2, (900,)), torch.randint(0, 7, (900,))
x[torch.arange(900), where, 0] += 4.0 * (2 * y - 1)
train = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=20, shuffle=True)
test = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=20)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(3, 16), nn.Linear(16, 2)

    def forward(self, x):
        out, _ = self.lstm(x.view(8, len(x), 3))  # error: view-instead-of-permute
        return self.head(out[-1])


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _epoch in range(4):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

model.eval()
with torch.no_grad():
    right = sum((model(inputs).argmax(1) == labels).sum().item() for inputs, labels in test)
print(f"result: {right / 300:.4f}")
