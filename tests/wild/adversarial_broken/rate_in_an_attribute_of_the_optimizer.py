"""The rate of each epoch is written to an attribute of the optimizer, which torch never reads."""

import torch
from torch import nn


def adjust_learning_rate(optimizer, epoch):
    optimizer.lr = 0.1 * 0.7**epoch  # error: learning-rate-off-course


torch.manual_seed(0)
x = torch.randn(600, 10)
y = (x @ torch.randn(10, 3)).argmax(1)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(8):
    adjust_learning_rate(optimizer, epoch)
    for rows in torch.randperm(600).split(20):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
