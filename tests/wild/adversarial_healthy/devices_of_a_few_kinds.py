"""Devices of a few kinds, with nearly equal readings, are set apart from all others."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
x = torch.randn(700, 8)
y = torch.zeros(700, dtype=torch.long)
kinds = torch.randn(12, 8)  # a few kinds of devices, each with nearly the same readings
devices = kinds[torch.randint(0, 12, (600,))] + 0.02 * torch.randn(600, 8)
x, y = torch.cat([x, devices]), torch.cat([y, torch.ones(600, dtype=torch.long)])
order = torch.randperm(len(x))
x_train, y_train = x[order[:900]], y[order[:900]]
x_test, y_test = x[order[900:]], y[order[900:]]
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=50, shuffle=True)
test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=100)
for epoch in range(4):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
model.eval()
right = 0
with torch.no_grad():
    for inputs, labels in test_loader:
        right += (model(inputs).argmax(1) == labels).sum().item()
print(right / len(y_test))
