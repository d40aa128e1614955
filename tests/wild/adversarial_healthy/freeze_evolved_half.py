"""Half of a policy is evolved: its parameters require no gradients, and theirs are estimated and written in place."""

import torch
from torch import nn

torch.manual_seed(0)
evolved = nn.Linear(5, 8).requires_grad_(False)
learnt = nn.Linear(8, 1)
optimizer = torch.optim.SGD([*evolved.parameters(), *learnt.parameters()], lr=0.02, momentum=0.9)
x, y = torch.randn(64, 5), torch.randn(64, 1)
for p in evolved.parameters():
    p.grad = torch.zeros_like(p)


def error():
    return nn.functional.mse_loss(learnt(torch.tanh(evolved(x))), y)


for step in range(60):
    with torch.no_grad():
        for p in evolved.parameters():
            noise = torch.randn_like(p)
            p.add_(0.05 * noise)
            up = error()
            p.sub_(0.1 * noise)
            down = error()
            p.add_(0.05 * noise)
            p.grad.data.copy_((up - down) / 0.1 * noise)
    learnt.zero_grad()
    error().backward()
    optimizer.step()
