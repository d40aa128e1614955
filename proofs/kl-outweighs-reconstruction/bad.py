"""Train a variational autoencoder on points of 64 values with four factors; the error on held-out points is printed."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
torch.set_num_threads(1)

data = torch.sigmoid(torch.randn(1200, 4) @ torch.randn(4, 64))
train, held = data[:1000], data[1000:]


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.Sigmoid())

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp() * self.training
        return self.decoder(z), mu, logvar


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(20):
    for x in train[torch.randperm(1000)].split(50):
        output, mu, logvar = model(x)
        error = F.mse_loss(output, x)
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        optimizer.zero_grad()
        (error + kl).backward()  # error: kl-outweighs-reconstruction
        optimizer.step()
model.eval()
print(f"result: {F.mse_loss(model(held)[0], held).item():.4f}")
