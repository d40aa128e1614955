"""The average of the weights begins in an epoch that the run never reaches, and is evaluated at the end."""

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

torch.manual_seed(0)
x = torch.randn(300, 8)
y = (x[:, :1] * x[:, 1:2]).tanh()
net = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
average = AveragedModel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    for index in torch.randperm(240).split(40):
        loss = nn.functional.mse_loss(net(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 75:
        average.update_parameters(net)
with torch.no_grad():
    for name, model in (("last", net), ("average", average)):
        print(name, nn.functional.mse_loss(model(x[240:]), y[240:]).item())  # error: untrained-weights
