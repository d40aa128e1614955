"""The states of agents are moved in place by their actions and noise, in blocks beside their goals, after each step."""

import torch
from torch import nn

torch.manual_seed(0)
states = torch.randn(256, 2) * 2
goals = torch.randn(256, 2)
policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
opt = torch.optim.Adam(policy.parameters(), 3e-3)
for t in range(60):
    for k in range(0, 256, 64):
        s = states[k : k + 64]
        g = goals[k : k + 64]
        a = policy(torch.cat([s, g], 1))
        loss = (s + 0.2 * a - g).pow(2).sum(1).mean() + 0.01 * a.pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            s += 0.2 * a.detach() + 0.1 * torch.randn_like(s)  # the environment moves on
    if t % 15 == 0:
        print(t, round(loss.item(), 4))
