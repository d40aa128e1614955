"""Standardisation per batch divides by the standard deviation of a constant column."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 5)
X[:, 2] = 1.0
loader = DataLoader(TensorDataset(X, X[:, :1]), batch_size=16, shuffle=True)
model = nn.Linear(5, 1)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)


def standardise(x):
    return (x - x.mean(0)) / x.std(0)


def training_loss(batch):
    x, y = batch
    return nn.functional.mse_loss(model(standardise(x)), y)


for epoch in range(3):
    for batch in loader:
        opt.zero_grad()
        loss = training_loss(batch)
        loss.backward()  # error: nan-or-inf
        opt.step()
    print(epoch, loss.item())
