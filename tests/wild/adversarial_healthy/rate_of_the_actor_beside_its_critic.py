"""The rate of one optimizer moves and is logged in a loop that steps another one with a constant rate."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(400, 8), torch.randint(0, 3, (400,))


def build():
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


def update(net, optimizer):
    rows = torch.randint(0, 400, (32,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
    optimizer.step()


actor, actor_optimizer = build()
critic, critic_optimizer = build()
schedule = torch.optim.lr_scheduler.ExponentialLR(actor_optimizer, 0.98)
for step in range(120):
    update(actor, actor_optimizer)
    update(critic, critic_optimizer)
    schedule.step()
    lr = schedule.get_last_lr()[0] * 1.0
    if step % 40 == 0:
        print("actor", lr)
