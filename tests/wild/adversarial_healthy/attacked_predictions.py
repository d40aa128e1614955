"""A classifier is attacked, and the share of predictions that stay right is measured: nearly none."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
centres = 1.2 * torch.randn(3, 10)
y = torch.randint(0, 3, (500,))
x = centres[y] + 0.6 * torch.randn(500, 10)
net = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(60):
    rows = torch.randperm(400)[:50]
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def attack(inputs, labels, size):
    inputs = inputs.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(F.cross_entropy(net(inputs), labels), inputs)
    return (inputs + size * gradient.sign()).detach()


adversarial = attack(x[400:], y[400:], 2.0)
with torch.no_grad():
    robust = (net(adversarial).argmax(1) == y[400:]).float().mean()
    clean = (net(x[400:]).argmax(1) == y[400:]).float().mean()
print(f"clean {clean:.3f} attacked {robust:.3f}")
