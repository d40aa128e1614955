"""Train a variational autoencoder on points of a low-dimensional space."""

import sys

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.set_num_threads(1)
seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

x = torch.randn(512, 2) @ torch.randn(2, 12)
x = (x - x.mean(0)) / x.std(0)
encoder = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 8))
decoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 12))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
prior = Normal(0.0, 1.0)

for _step in range(400):
    batch = x[torch.randint(len(x), (64,))]
    mean, log_scale = encoder(batch).chunk(2, dim=1)
    posterior = Normal(mean, log_scale.exp())
    decoded = decoder(posterior.sample())  # error: sample-without-gradient
    loss = nn.functional.mse_loss(decoded, batch) + 0.01 * kl_divergence(posterior, prior).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

with torch.no_grad():
    mean = encoder(x).chunk(2, dim=1)[0]
    error = nn.functional.mse_loss(decoder(mean), x).item()
print(f"result: {error:.4f}")
