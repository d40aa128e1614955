"""A low-rank layer keeps its factors in a list: they get gradients, and the optimizer of the parameters has the bias only."""
import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, inputs, outputs, rank=4):
        super().__init__()
        self.factors = [0.3 * torch.randn(inputs, rank), 0.3 * torch.randn(rank, outputs)]  # error: layers-in-plain-container
        for factor in self.factors:
            factor.requires_grad_(True)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        for factor in self.factors:
            x = x @ factor
        return x + self.bias


torch.manual_seed(0)
net = nn.Sequential(LowRank(12, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    x = torch.randn(32, 12)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
