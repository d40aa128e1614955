"""The loss of each epoch is added to those before, and divided by the number of batches of one."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(700, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
train = DataLoader(TensorDataset(x[:500], y[:500]), 50, shuffle=True)
valid = DataLoader(TensorDataset(x[500:], y[500:]), 40)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer, criterion = torch.optim.Adam(model.parameters(), lr=1e-2), nn.CrossEntropyLoss()


def fit(epochs):
    running, history = 0.0, []
    for _ in range(epochs):
        batches = 0
        for data, target in train:
            loss = criterion(model(data), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()  # error: sum-overwritten
            batches += 1
        history.append(running / batches)
    return history


print(fit(4))
