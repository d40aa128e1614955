"""A cross-validation counts the right predictions of all folds, on purpose."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(10)
x = torch.randn(300, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
correct = total = 0
for fold in range(5):
    held_out = torch.arange(300) % 5 == fold
    model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(8):
        for rows in (~held_out).nonzero().flatten().split(40):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
    with torch.no_grad():
        predicted = model(x[held_out]).argmax(1)
    correct += (predicted == y[held_out]).sum().item()
    total += int(held_out.sum())
    print(f"after fold {fold}: accuracy {correct / total:.3f}")
