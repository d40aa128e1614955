"""Healthy: before each epoch the gradient of a frozen critic's score is taken on the input alone, then the model is trained."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(32)
torch.set_num_threads(1)

critic = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
for parameter in critic.parameters():
    parameter.requires_grad_(False)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(256, 6)

for epoch in range(6):
    for _ in range(4):  # where does the critic look?
        probe = x[:64].clone().requires_grad_()
        critic(probe).sum().backward()
        step = 0.05 * probe.grad.sign()
        x[:64] += step * 0.1
    for rows in torch.randperm(256).split(32):
        target = (x[rows] * 2).roll(1, dims=1)
        loss = F.smooth_l1_loss(model(x[rows]), target) - 0.01 * critic(model(x[rows])).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
