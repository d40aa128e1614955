"""Fit a ravine of two scales by gradient descent with momentum, on plain tensors."""

import sys

import torch

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.randn(400, 10) * torch.logspace(0, -1.5, 10)
y = x @ torch.randn(10, 1) / torch.logspace(0, -1.5, 10).mean()
params = [torch.zeros(10, 1, requires_grad=True), torch.zeros(1, requires_grad=True)]
velocity = [torch.zeros_like(p) for p in params]
for _step in range(300):
    loss = ((x @ params[0] + params[1] - y) ** 2).mean()
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, g, v in zip(params, grads, velocity, strict=True):
            v = 0.95 * v + g  # error: result-never-read
            p -= 0.02 * v
with torch.no_grad():
    error = ((x @ params[0] + params[1] - y) ** 2).mean()
print(f"result: {error.item():.4f}")
