"""Damped Newton-CG: the damping is a proximal term at the current weights, for curvature only (its value and gradient are zero); live data list."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
params = list(net.parameters())
X = torch.randn(128, 6)
Y = torch.sin(X @ torch.randn(6, 1))
opt = torch.optim.SGD(params, 0.5)
for step in range(30):
    loss = F.mse_loss(net(X), Y) + 0.05 * sum((p - p.detach()).pow(2).sum() for p in params)  # H + 0.1 I
    opt.zero_grad()
    loss.backward(create_graph=True)
    g = [p.grad for p in params]
    flat = torch.cat([x.flatten() for x in g])
    x = torch.zeros_like(flat.detach())
    r = flat.detach().clone()
    d = r.clone()
    for _ in range(8):
        Hd = torch.cat([h.flatten() for h in torch.autograd.grad(flat @ d, params, retain_graph=True)])
        dHd = d @ Hd
        if dHd <= 0:
            break
        a = r @ r / dHd
        x = x + a * d
        n = r - a * Hd
        if n.norm() < 1e-6:
            break
        d = n + (n @ n) / (r @ r) * d
        r = n
    at = 0
    for p in params:
        p.grad = x[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
print(loss.item())
