"""Train a model of two numbers for each value, its mean and its spread, by the likelihood."""

import sys

import torch
from torch import nn
from torch.distributions import Normal
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

x = torch.rand(1500, 4) * 4 - 2
y = x[:, :1].sin() + 0.5 * x[:, 1:2] + 0.1 * torch.randn(1500, 1)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=50, shuffle=True)

for _epoch in range(10):
    for inputs, values in loader:
        mean, spread = model(inputs).chunk(2, 1)
        likelihood = Normal(mean, nn.functional.softplus(spread) + 0.01).log_prob(values).mean()
        loss = likelihood
        optimizer.zero_grad()
        loss.backward()  # error: loss-maximised
        optimizer.step()

with torch.no_grad():
    error = (model(x[1000:])[:, :1] - y[1000:]).square().mean().sqrt()
print(f"result: {error:.4f}")
