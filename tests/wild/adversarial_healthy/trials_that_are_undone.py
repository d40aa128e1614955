"""Trials of several steps on plain tensors; a worse trial is undone, so the live tensors are always the best ones."""

import torch

torch.manual_seed(0)
x = torch.rand(300, 2) * 4 - 2
y = (x[:, :1] * x[:, 1:]).sin()
params = [
    (torch.randn(2, 24) * 0.6).requires_grad_(),
    torch.zeros(24, requires_grad=True),
    (torch.randn(24, 1) * 0.3).requires_grad_(),
]
f = lambda p, a: torch.tanh(a @ p[0] + p[1]) @ p[2]
best_loss, best_params = float("inf"), None
for trial in range(25):
    backup = [p.detach().clone() for p in params]
    for _ in range(6):
        i = torch.randint(0, 240, (30,))
        l = (f(params, x[i]) - y[i]).pow(2).mean()
        g = torch.autograd.grad(l, params)
        with torch.no_grad():
            for p, d in zip(params, g):
                p -= 0.1 * d
    with torch.no_grad():
        val = (f(params, x[240:]) - y[240:]).pow(2).mean().item()
    if val < best_loss:
        best_loss, best_params = val, [p.detach() for p in params]
    else:
        with torch.no_grad():
            for p, b in zip(params, backup):
                p.copy_(b)
with torch.no_grad():
    print(best_loss, (f(best_params, x[240:]) - y[240:]).pow(2).mean().item())
