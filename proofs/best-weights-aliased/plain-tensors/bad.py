"""Train a list of tensors on noisy labels, keep the best ones and use them at the end."""

import sys

import torch
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.randn(1500, 20)
y = (x[:, :4].sum(1) > 0).long()
flipped = torch.rand(300) < 0.35
y[:300] = torch.where(flipped, 1 - y[:300], y[:300])
params = [torch.randn(20, 256) / 20**0.5, torch.zeros(256), torch.randn(256, 2) / 16]
params = [p.requires_grad_() for p in params]


def predict(params, rows):
    w1, b1, w2 = params
    return torch.relu(x[rows] @ w1 + b1) @ w2


def accuracy(params, rows):
    with torch.no_grad():
        return (predict(params, rows).argmax(1) == y[rows]).float().mean().item()


best = 0.0
for _ in range(60):
    for rows in torch.randperm(300).split(50):
        grads = torch.autograd.grad(F.cross_entropy(predict(params, rows), y[rows]), params)
        for p, g in zip(params, grads, strict=True):
            p.data -= 0.5 * g
    if accuracy(params, slice(300, 600)) > best:
        best = accuracy(params, slice(300, 600))
        best_params = [p.detach() for p in params]  # error: best-weights-aliased
print(f"result: {accuracy(best_params, slice(600, 1500)):.4f}")
