"""Healthy: linear models that begin at zero (softmax regression, several outputs), and a constant first layer before a random one."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(42)
torch.set_num_threads(1)

x = torch.randn(480, 8)
truth = torch.randn(8, 5)
y = (x @ truth).argmax(1)

softmax_regression = nn.Linear(8, 5)
nn.init.zeros_(softmax_regression.weight)
nn.init.zeros_(softmax_regression.bias)
optimizer = torch.optim.SGD(softmax_regression.parameters(), lr=0.5, weight_decay=1e-3)
for step in range(60):
    loss = F.cross_entropy(softmax_regression(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"softmax regression {(softmax_regression(x).argmax(1) == y).float().mean():.3f}")

several = nn.Linear(8, 5, bias=False)
nn.init.constant_(several.weight, 0.25)
optimizer = torch.optim.Adam(several.parameters(), lr=0.05)
for step in range(60):
    loss = F.mse_loss(several(x), x @ truth)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"five regressions {loss.item():.3f}")

mixing = nn.Sequential(nn.Linear(8, 24), nn.Tanh(), nn.Linear(24, 5))
nn.init.ones_(mixing[0].weight)  # the random layer after it makes the units differ
optimizer = torch.optim.Adam(mixing.parameters(), lr=0.02)
for step in range(60):
    loss = F.cross_entropy(mixing(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"constant first layer {(mixing(x).argmax(1) == y).float().mean():.3f}")
