"""Fitted Q iteration: one pass over targets of the last Q with a new Adam each, in a function and in a loop."""

import torch
from torch import nn

torch.manual_seed(0)
S = torch.randn(1024, 4)
A = torch.randint(0, 3, (1024,))
R = (S[:, :3].gather(1, A[:, None])).squeeze(1)
S2 = 0.8 * S + 0.2 * torch.randn_like(S)
q = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 3))


def regress(targets):
    opt = torch.optim.Adam(q.parameters(), lr=3e-3)
    for i in torch.randperm(1024).split(64):
        loss = (q(S[i]).gather(1, A[i, None]).squeeze(1) - targets[i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


for iteration in range(10):
    with torch.no_grad():
        targets = R + 0.9 * q(S2).max(1).values
    l = regress(targets)
    if iteration % 3 == 0:
        print(iteration, round(l, 3))
for sweep in range(10):
    with torch.no_grad():
        targets = R + 0.9 * q(S2).max(1).values
    opt = torch.optim.Adam(q.parameters(), lr=3e-3)
    for i in torch.randperm(1024).split(64):
        loss = nn.functional.huber_loss(q(S[i]).gather(1, A[i, None]).squeeze(1), targets[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(round(loss.item(), 3))
