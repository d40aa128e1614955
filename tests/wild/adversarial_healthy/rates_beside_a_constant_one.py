"""Constant rates on purpose, beside rates that move: of a table by hand, an average, Adam's size, a loss, a task."""

import math

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(400, 8), torch.randint(0, 3, (400,))


def build(lr=1e-2, kind=torch.optim.Adam):
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return net, kind(net.parameters(), lr=lr)


def batch(net):
    rows = torch.randint(0, 400, (32,))
    return nn.functional.cross_entropy(net(x[rows]), y[rows])


def update(net, optimizer):
    optimizer.zero_grad()
    loss = batch(net)
    loss.backward()
    optimizer.step()
    return loss.item()


# A table that is updated by hand, with another rate.
net, optimizer = build()
table = torch.zeros(3, 8, requires_grad=True)
for step in range(120):
    lr = 1e-2 * 0.97**step
    (gradient,) = torch.autograd.grad((x[:32] @ table.T).square().mean() + table.sum(), table)
    with torch.no_grad():
        table -= lr * gradient
    update(net, optimizer)
print("table", round(table.sum().item(), 3), lr)


# An object that moves weights itself, with a rate that falls.
class Averager:
    def __init__(self, size):
        self.values, self.lr, self.count = torch.zeros(size), 1e-2, 0

    def step(self, target):
        self.count += 1
        self.lr = 1e-2 / math.sqrt(self.count)
        self.values += self.lr * (target - self.values)


net, optimizer = build()
averager = Averager(8)
for step in range(120):
    update(net, optimizer)
    averager.step(net[0].weight.detach().mean(0))
print("averager", averager.lr)

# The size of Adam's steps after its correction of the bias is shown.
net, optimizer = build()
for step in range(120):
    update(net, optimizer)
    effective_lr = 1e-2 * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    if step % 40 == 0:
        print("effective", effective_lr)

# The decay is switched off by a setting.
net, optimizer = build()
decays = False
for step in range(120):
    learning_rate = 1e-2 * 0.97**step if decays else 1e-2
    update(net, optimizer)
print("constant", learning_rate)

# The rate scales the loss, not the step.
net, optimizer = build(0.1, torch.optim.SGD)
for step in range(120):
    lr = 0.1 * 0.98**step
    optimizer.zero_grad()
    (batch(net) * lr / 0.1).backward()
    optimizer.step()
print("scaled", lr)

# The rate of the task is that of its inner loop; the outer optimizer keeps its own.
net, optimizer = build()
for step in range(60):
    inner_lr = 0.01 * 0.99**step
    fast = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    loss = nn.functional.cross_entropy(torch.func.functional_call(net, fast, (x[:32],)), y[:32])
    gradients = torch.autograd.grad(loss, list(fast.values()))
    moved = {name: p - inner_lr * g for (name, p), g in zip(fast.items(), gradients)}
    optimizer.zero_grad()
    for (name, p), q in zip(net.named_parameters(), moved.values()):
        p.grad = p.detach() - q.detach()
    optimizer.step()
print("reptile", inner_lr)
