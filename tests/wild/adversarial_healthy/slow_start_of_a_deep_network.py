"""A deep network is close to guesses for some passes, and then learns."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 20)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=30, shuffle=True)
layers = [part for _ in range(4) for part in (nn.Linear(20, 20), nn.Sigmoid())]
model = nn.Sequential(*layers, nn.Linear(20, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(16):
    total = 0.0
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
