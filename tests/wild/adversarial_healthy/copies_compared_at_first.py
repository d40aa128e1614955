"""Healthy: results of a network and of its copy are equal before they are trained apart, and zero losses of constants."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
old = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
nothing = torch.zeros(40, 3)
for step in range(40):
    x = torch.randn(40, 5)
    apart = nn.functional.mse_loss(net(x).detach(), old(x))  # how far it is from the copy, to print
    still = nn.functional.l1_loss(nothing, torch.zeros(40, 3))
    loss = nn.functional.mse_loss(net(x), x[:, :2] * 2) + 0.01 * still
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, apart {apart.item():.3f}")
