"""The last layer is initialised for its width: the first predictions are those of a guess."""

import torch
from torch import nn

torch.manual_seed(0)
centers = torch.randn(10, 30)
labels = torch.randint(0, 10, (2000,))
inputs = centers[labels] + torch.randn(2000, 30)

model = nn.Sequential(nn.Linear(30, 128), nn.Tanh(), nn.Linear(128, 10))
nn.init.normal_(model[2].weight, std=0.05)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    for rows in torch.randperm(2000).split(40):
        loss = criterion(model(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
