"""Weights in plain tensors, and a rate of 30 for Adam."""

import torch

torch.manual_seed(0)
x = torch.randn(400, 6)
y = (x @ torch.tensor([1.0, -1, 2, 0, 0, 1]) > 0).float()
w1 = (torch.randn(6, 20) / 6**0.5).requires_grad_()
b1 = torch.zeros(20, requires_grad=True)
w2 = (torch.randn(20, 1) / 20**0.5).requires_grad_()
optimizer = torch.optim.Adam([w1, b1, w2], lr=30)  # error: update-exceeds-weights
for step in range(60):
    hidden = torch.relu(x @ w1 + b1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits((hidden @ w2)[:, 0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
