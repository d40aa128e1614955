"""Trained on data only: the residual of the equation is a number to watch, and detached weights of the samples."""

import torch
from torch import nn

torch.manual_seed(0)
t = torch.rand(400, 1) * 4
y = torch.exp(-0.7 * t) + 0.01 * torch.randn_like(t)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 3e-3)
for step in range(200):
    i = torch.randint(0, 400, (64,))
    x = t[i].clone().requires_grad_()
    u = net(x)
    du = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True)[0]
    residual = du + 0.7 * u
    loss = (u - y[i]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 50 == 0:
        print(step, round(loss.item(), 5), "physics residual", round(residual.abs().mean().item(), 4))

net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), 3e-3)
for step in range(200):
    i = torch.randint(0, 400, (64,))
    x = t[i].clone().requires_grad_()
    u = net(x)
    du = torch.autograd.grad(u.sum(), x, retain_graph=True)[0]
    violation = (du + 0.7 * u).abs()
    weights = 1 + violation.detach() / violation.detach().max()
    loss = (weights * (u - y[i]).pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(round(loss.item(), 5))
