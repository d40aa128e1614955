"""Calls in an hour, as counts: the network returns the rate, and the loss takes its logarithm."""
import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(900, 3)
calls = torch.poisson(torch.exp(1.5 * x[:, 0] - x[:, 1]))


class Rate(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, inputs):
        return nn.functional.softplus(self.body(inputs)).squeeze(1)


net = Rate()
criterion = nn.PoissonNLLLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(10):
    for rows in torch.randperm(700).split(50):
        loss = criterion(net(x[rows]), calls[rows])
        optimizer.zero_grad()
        loss.backward()  # error: activation-clamps-output
        optimizer.step()
    print(epoch, loss.item())
net.eval()
with torch.no_grad():
    print((net(x[700:]) - calls[700:]).abs().mean().item())
