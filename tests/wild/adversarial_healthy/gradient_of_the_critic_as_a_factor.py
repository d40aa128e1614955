"""The gradient of a critic by the action is a factor of the loss of the actor, on purpose without a graph."""

import torch
from torch import nn
torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
s = torch.randn(256, 4)
for i in range(60):
    o = s[torch.randint(0, 256, (64,))]
    a = actor(o)
    leaf = a.detach().requires_grad_()
    q = critic(torch.cat([o, leaf], 1))
    dqda = torch.autograd.grad(q.sum(), leaf, retain_graph=True)[0]
    critic_loss = (q.squeeze(1) + (o[:, :2] - leaf.detach()).square().sum(1)).square().mean()
    actor_loss = -(dqda * a).sum(1).mean()
    loss = critic_loss + actor_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
