"""Outputs that are read twice by their place, beside others: two words of a vocabulary, a variance that joins later, one task after another."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(400, 6)
values = x @ torch.randn(6, 4) + 0.1 * torch.randn(400, 4)
classes = (values[:, 0] > 0).long()
YES, NO = 3, 7


def network(outputs):
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, outputs))


words, normal, tasks, closed = network(12), network(2), network(4), network(3)
optimizers = [torch.optim.AdamW(net.parameters(), lr=5e-3) for net in (words, normal, tasks, closed)]
for step in range(160):
    rows = torch.randint(0, 320, (32,))
    target, kind = values[rows], classes[rows]

    out = words(x[rows])
    margin = out[:, YES] - out[:, NO]
    losses = [F.cross_entropy(torch.stack([out[:, NO], out[:, YES]], 1), kind) + 0.01 * margin.square().mean()]

    out = normal(x[rows])
    if step < 80:
        losses.append(F.mse_loss(out[:, 0], target[:, 0]) + 0.1 * F.l1_loss(out[:, 0], target[:, 0]))
    else:
        losses.append(0.5 * (out[:, 1] + (target[:, 0] - out[:, 0]) ** 2 / out[:, 1].exp()).mean())

    out, task = tasks(x[rows]), step * 4 // 160
    losses.append(F.mse_loss(out[:, task], target[:, task]) + 0.1 * F.l1_loss(out[:, task], target[:, task]))

    first, second, third = closed(x[rows]).unbind(1)
    total = target[:, :3].sum(1)
    losses.append(F.mse_loss(first, target[:, 0]) + F.mse_loss(second, target[:, 1]) + F.mse_loss(first + second + third, total))
    for optimizer, loss in zip(optimizers, losses, strict=True):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    out = words(x[320:])
    print("words", ((out[:, YES] > out[:, NO]).long() == classes[320:]).float().mean().item())
    print("mean", (normal(x[320:])[:, 0] - values[320:, 0]).abs().mean().item())
