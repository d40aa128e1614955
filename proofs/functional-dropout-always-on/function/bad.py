"""Fit a curve with a network of functions, with dropout by a flag."""

import sys

import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
x = torch.rand(600, 2) * 4 - 2
y = torch.sin(2 * x[:, :1]) + x[:, 1:]
weights = [(torch.randn(n, m) / n**0.5).requires_grad_() for n, m in ((2, 64), (64, 64), (64, 1))]


def forward(weights, x, train=True):
    h = torch.tanh(x @ weights[0])
    h = torch.tanh(F.dropout(h, 0.3, train) @ weights[1])
    return F.dropout(h, 0.3, train) @ weights[2]


@torch.no_grad()
def evaluate(weights, x, y):
    return F.mse_loss(forward(weights, x), y).item()  # error: functional-dropout-always-on


optimizer = torch.optim.Adam(weights, lr=5e-3)
for _step in range(300):
    optimizer.zero_grad()
    F.mse_loss(forward(weights, x[:400], train=True), y[:400]).backward()
    optimizer.step()
print(f"result: {evaluate(weights, x[400:], y[400:]):.4f}")
