"""A test with its columns in another order shows how far the accuracy falls without them."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x, y = torch.tensor(x).float(), torch.tensor(y)
order = torch.randperm(len(x))
x, y = x[order], y[order]
mean, std = x[:400].mean(0), x[:400].std(0)
x = (x - mean) / std
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for _ in range(30):
    for rows in torch.randperm(400).split(50):
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(inputs):
    return (model(inputs).argmax(1) == y[400:]).float().mean().item()


test = x[400:].clone()
print(f"test {accuracy(test):.3f}")
mixed = test[:, torch.randperm(30)]
print(f"columns mixed {accuracy(mixed):.3f}")
for group in torch.arange(30).split(10):
    inputs = test.clone()
    inputs[:, group] = inputs[:, group.flip(0)]
    print(f"without columns {group[0].item()} to {group[-1].item()}: {accuracy(inputs):.3f}")
