"""Terms of probabilities that look like a log-sigmoid: a steep softplus of gates, and a risk, log(1 + exp(rate))."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
inputs = torch.randn(400, 8)
targets = (torch.sin(inputs @ torch.randn(8)) > 0).float()
goal = torch.sigmoid(inputs @ torch.randn(8, 4))
line, gate, out = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 1)
rates = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4), nn.Sigmoid())
layers = nn.ModuleList([line, gate, out, rates])
optimizer = torch.optim.Adam(layers.parameters(), 1e-2)
for step in range(200):
    rows = slice(step % 10 * 40, step % 10 * 40 + 40)
    opened = torch.sigmoid(gate(inputs[rows]))
    loss = F.binary_cross_entropy_with_logits(out(line(inputs[rows]) * opened)[:, 0], targets[rows])
    loss = loss + 0.01 * F.softplus(opened, beta=20).mean() - 0.01 * (opened * torch.log(opened + 1e-7)).mean()

    rate = rates(inputs[rows])
    risk = torch.log(0.5 + 0.5 * torch.exp(rate)).mean() + torch.log(1 + torch.exp(rate)).mean()
    loss = loss + ((rate - goal[rows]) ** 2).mean() + 0.01 * risk
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
