"""A physics-informed network: the derivatives are taken first, then one loss is propagated, and its graph retained."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for step in range(60):
    t = torch.rand(64, 1).requires_grad_()
    u = net(t)
    (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
    loss = (slope + u).pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)  # error: retain-graph-in-loop
    optimizer.step()
print(loss.item())
