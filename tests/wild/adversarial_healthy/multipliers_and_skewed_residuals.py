"""Constraints with multipliers that are logarithms, a penalty on skewed residuals, and an equation with products."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
speed = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
raw, dual = nn.Parameter(torch.zeros(4)), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*net.parameters(), *speed.parameters()], lr=1e-2)
ascent = torch.optim.SGD([raw, *dual.parameters()], lr=0.1, maximize=True)
x = torch.randn(256, 3)
group, y = torch.randint(4, (256,)), x.sum(1)
for _ in range(60):
    out, fast = net(x).squeeze(1), speed(x).squeeze(1)
    multiplier = torch.log(1 + raw.exp())[group]
    local = torch.logsumexp(torch.cat([dual(x), torch.zeros(256, 1)], 1), 1)
    residual = out - y
    constraints = (multiplier * (out - 2.0)).mean() + 0.1 * (local * (out - y - 0.5)).mean()
    skew = (residual**2 * residual).mean()
    equation = ((fast - 1.0) ** 2 * (1.0 - out) - y).pow(2).mean()
    loss = F.mse_loss(out, y) + 0.1 * constraints + 0.01 * skew + 0.01 * equation + 0.01 * (fast - 1).pow(2).mean()
    optimizer.zero_grad()
    ascent.zero_grad()
    loss.backward()
    optimizer.step()
    ascent.step()
print(f"{loss.item():.3f}")
