"""Rare samples are copied to balance the classes, and the copies are split into training and validation."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(14)
x = torch.randn(500, 12)
y = (x[:, 0] + 0.7 * torch.randn(500) > 1.2).long()
rare = (y == 1).nonzero().flatten()
copies = rare[torch.randint(0, len(rare), (350,))]
data = TensorDataset(torch.cat([x, x[copies]]), torch.cat([y, y[copies]]))
train, validation = random_split(data, [680, 170])
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    model.train()
    for inputs, labels in DataLoader(train, batch_size=40, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, labels in DataLoader(validation, batch_size=85):  # error: train-validation-overlap
            right += (model(inputs).argmax(1) == labels).sum().item()
    print(epoch, right / len(validation))
