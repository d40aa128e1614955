"""An average in place: the share of the trained model is multiplied by the decay too, and the average shrinks."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 6)
y = x[:, :1] - x[:, 1:2]
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
mean = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
with torch.no_grad():
    print("before", nn.functional.mse_loss(mean(x), y).item())
for epoch in range(12):
    for index in torch.randperm(300).split(30):
        nn.functional.mse_loss(net(x[index]), y[index]).backward()
        optimizer.step()
        optimizer.zero_grad()
        for slow, fast in zip(mean.parameters(), net.parameters(), strict=True):  # error: average-with-wrong-shares
            slow.add_(fast.detach(), alpha=0.05).mul_(0.9)
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(mean(x), y).item())
