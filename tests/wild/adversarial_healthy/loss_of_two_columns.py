"""The mean of squared differences by hand, of a column of predictions and a column of targets."""

import torch
from torch import nn

torch.manual_seed(0)
rooms = torch.randn(512, 7)
prices = rooms @ torch.randn(7) + 0.1 * torch.randn(512)

model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    for rows in torch.randperm(512).split(64):
        predicted = model(rooms[rows])
        loss = ((predicted - prices[rows, None]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
