"""Most batches are only looked at: a step is taken for hard batches, for surprising ones, and under a limit."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, 0] > 0).long()


def make():
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
    return net, torch.optim.SGD(net.parameters(), 0.3)


net, opt = make()
for step in range(60):
    rows = torch.randint(200, (10,))
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    loss.backward()
    value = loss.item()
    if value > 0.5:
        opt.step()

net, opt = make()
mean = None
for step in range(60):
    rows = torch.randint(200, (10,))
    opt.zero_grad()
    error = nn.functional.cross_entropy(net(x[rows]), y[rows])
    error.backward()
    value = error.item()
    surprising = mean is None or value > 1.05 * mean
    mean = value if mean is None else 0.95 * mean + 0.05 * value
    if surprising:
        opt.step()


def fit(net, opt, rows, limit):
    loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
    loss.backward()
    if loss.item() > limit:
        opt.zero_grad()
        return False
    opt.step()
    opt.zero_grad()
    return True


net, opt = make()
print(sum(fit(net, opt, torch.randint(200, (10,)), 0.9 if step % 5 == 0 else 0.6) for step in range(60)))
