"""ReduceLROnPlateau in its default mode waits for the accuracy to fall; a second one counts epochs."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(0)
x = torch.randn(300, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
body, head = (torch.optim.SGD(part.parameters(), lr=0.1) for part in (net[0], net[2]))
by_accuracy, by_epoch = ReduceLROnPlateau(body, patience=2), ReduceLROnPlateau(head, patience=2)
for epoch in range(12):
    for index in torch.randperm(240).split(40):
        body.zero_grad()
        head.zero_grad()
        nn.functional.cross_entropy(net(x[index]), y[index]).backward()
        body.step()
        head.step()
    with torch.no_grad():
        val_acc = (net(x[240:]).argmax(1) == y[240:]).float().mean().item()
    by_accuracy.step(val_acc)  # error: plateau-without-metric
    by_epoch.step(epoch)  # error: plateau-without-metric
