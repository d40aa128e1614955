"""The code of an image is drawn by `torch.normal`, in a method of the model: its mean and spread get a divergence only."""

import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(9, 24), nn.Tanh(), nn.Linear(24, 6))
        self.decode = nn.Sequential(nn.Linear(3, 24), nn.Tanh(), nn.Linear(24, 9))

    def code(self, mean, spread):
        return torch.normal(mean, spread)  # error: sample-without-gradient

    def forward(self, x):
        mean, log_var = self.encode(x).chunk(2, dim=1)
        return self.decode(self.code(mean, (0.5 * log_var).exp())), mean, log_var


torch.manual_seed(0)
points = torch.randn(300, 2) @ torch.randn(2, 9)
model = Coder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(60):
    batch = points[torch.randint(300, (50,))]
    made, mean, log_var = model(batch)
    divergence = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
    loss = (made - batch).pow(2).sum(1).mean() + 0.1 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
