"""Helpers that hand out one batch: a function that returns from its loop, a loader of one batch, max_batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(120, 4)
y = x @ torch.tensor([[1.0], [2.0], [-1.0], [0.5]])
random_batches = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
everything = DataLoader(TensorDataset(x, y), batch_size=120)
model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def sample():
    for batch in random_batches:
        return batch


def train_epoch(loader, max_batches):
    total = 0.0
    for number, (inputs, targets) in enumerate(loader):
        if number >= max_batches:
            break
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def full_batch_epoch():
    for inputs, targets in everything:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.item()


for iteration in range(20):
    inputs, targets = sample()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
for epoch in range(6):
    print(train_epoch(random_batches, 1), full_batch_epoch())
