"""Fit a line to noisy rows with a large rate, and use the average of the weights over the updates."""

import sys

import torch

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

truth = torch.randn(10)
x = torch.randn(4000, 10)
y = x @ truth + 2 * torch.randn(4000)
w = torch.zeros(10, requires_grad=True)
average = w.detach()  # error: reference-is-the-model
for i, rows in enumerate(torch.randperm(4000).split(4)):
    (x[rows] @ w - y[rows]).pow(2).mean().backward()
    with torch.no_grad():
        w -= 0.05 * w.grad
        w.grad.zero_()
        if i >= 200:
            average.lerp_(w, 0.01)
print(f"result: {(average - truth).norm().item():.4f}")
