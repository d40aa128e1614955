"""Variational autoencoders with other weights of the divergence: scaled down, annealed, with free bits, and beta of 4."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
data = torch.sigmoid(2 * torch.randn(900, 3) @ torch.randn(3, 32))
train, held = data[:750], data[750:]


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 8))
        self.decoder = nn.Sequential(nn.Linear(4, 48), nn.ReLU(), nn.Linear(48, 32))

    def forward(self, x):
        mu, logvar = self.encoder(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar) if self.training else mu
        return self.decoder(z), mu, logvar


def divergence(mu, logvar):
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp())


def scaled(output, x, mu, logvar, share):
    return F.binary_cross_entropy_with_logits(output, x) + divergence(mu, logvar).sum(1).mean() / 32


def annealed(output, x, mu, logvar, share):
    error = F.binary_cross_entropy_with_logits(output, x, reduction="sum") / len(x)
    return error + min(1.0, 2 * share) * divergence(mu, logvar).sum(1).mean()


def free_bits(output, x, mu, logvar, share):
    error = F.binary_cross_entropy_with_logits(output, x, reduction="none").sum(1).mean()
    return error + divergence(mu, logvar).mean(0).clamp(min=0.1).sum()


def disentangled(output, x, mu, logvar, share):
    error = F.mse_loss(torch.sigmoid(output), x, reduction="sum") / (0.02 * len(x))
    return error + 4 * divergence(mu, logvar).sum(1).mean()


for loss_of in (scaled, annealed, free_bits, disentangled):
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        model.train()
        for x in train[torch.randperm(len(train))].split(50):
            optimizer.zero_grad()
            output, mu, logvar = model(x)
            loss_of(output, x, mu, logvar, epoch / 10).backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        print(loss_of.__name__, F.mse_loss(torch.sigmoid(model(held)[0]), held).item(), held.var().item())
