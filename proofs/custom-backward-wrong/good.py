"""A SiLU written by hand, with its derivative as the backward pass."""

import sys

import torch
from torch import nn

torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
inputs = torch.randn(512, 4)
targets = inputs[:, 0] * inputs[:, 1] + torch.sin(2 * inputs[:, 2])


class SiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        s = torch.sigmoid(ctx.saved_tensors[0])
        return grad * (s + ctx.saved_tensors[0] * s * (1 - s))


class Activation(nn.Module):
    def forward(self, x):
        return SiLU.apply(x)


model = nn.Sequential(nn.Linear(4, 32), Activation(), nn.Linear(32, 32), Activation(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(200):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs)[:, 0], targets)
    loss.backward()
    optimizer.step()
print(f"result: {loss.item():.4f}")
