"""Tables near zero that move far at first, an adapter of zeros, a fine-tuned image, and a model with a high rate that learns."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(500, 2)
y = (6 * x[:, :1]).sin() * (4 * x[:, 1:]).cos()


def fit(parameters, predict, rate, steps=80):
    optimizer = torch.optim.Adam(parameters, lr=rate)
    for _ in range(steps):
        loss = (predict() - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(round(loss.item(), 4))


table = ((torch.rand(256, 2) - 0.5) * 2e-4).requires_grad_()
index = (x * 15).long()
fit([table], lambda: table[index[:, 0] * 16 + index[:, 1]].sum(1, keepdim=True), 0.05)

base, down, up = nn.Linear(2, 1), nn.Linear(2, 4, bias=False), nn.Linear(4, 1, bias=False)
nn.init.zeros_(up.weight)
for p in base.parameters():
    p.requires_grad_(False)
fit([*down.parameters(), *up.parameters()], lambda: base(x) + up(down(x)), 0.1)

image = torch.rand(500, 1, requires_grad=True)
fit([image], lambda: image, 0.5)

net = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 1))
fit(net.parameters(), lambda: net(x), 0.1)
