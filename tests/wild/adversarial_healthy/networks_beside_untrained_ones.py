"""Networks that are measured beside untrained ones: a baseline in each epoch, a slow average at the end, first weights."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 8)
y = (x[:, :1] * x[:, 1:2]).tanh()


def build():
    return nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))


@torch.no_grad()
def error(model):
    model.eval()
    value = nn.functional.mse_loss(model(x[240:]), y[240:]).item()
    model.train()
    return value


net, other = build(), build()
slow, before = copy.deepcopy(net), copy.deepcopy(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(6):
    for index in torch.randperm(240).split(40):
        loss = nn.functional.mse_loss(net(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, p in zip(slow.parameters(), net.parameters(), strict=True):
                mean.lerp_(p, 0.002)
    print(epoch, error(net), error(other))
half = build()
half.load_state_dict({key: 0.5 * (value + before.state_dict()[key]) for key, value in net.state_dict().items()})
print(error(slow), error(half))
