"""Variational autoencoder on 8x8 digits with samples from the prior."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader


class VAE(nn.Module):
    """Gaussian encoder and Bernoulli decoder."""

    def __init__(self, latent=6):
        super().__init__()
        self.latent = latent
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU())
        self.to_mu = nn.Linear(96, latent)
        self.to_logvar = nn.Linear(96, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 96), nn.ReLU(), nn.Linear(96, 64))

    def forward(self, x):
        h = self.encoder(x)
        mu, logvar = self.to_mu(h), self.to_logvar(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
        return self.decoder(z), mu, logvar

    def sample(self, n):
        return torch.sigmoid(self.decoder(torch.randn(n, self.latent)))


def vae_loss(logits, x, mu, logvar):
    """Return the negative ELBO of the batch, per example, and its KL part."""
    rec = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (rec + kl) / x.shape[0], kl / x.shape[0]


def main():
    torch.manual_seed(0)
    images = torch.tensor(load_digits().data / 16.0, dtype=torch.float32)
    train, test = train_test_split(images, test_size=0.25, random_state=0)
    loader = DataLoader(train, batch_size=64, shuffle=True)
    vae = VAE()
    optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
    for epoch in range(1, 19):
        vae.train()
        total = 0.0
        for x in loader:
            logits, mu, logvar = vae(x)
            loss, _ = vae_loss(logits, x, mu, logvar)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * x.shape[0]
        if epoch % 6 == 0:
            print(f"epoch {epoch}: train loss {total / len(train):.3f}")
    vae.eval()
    with torch.no_grad():
        logits, mu, logvar = vae(test)
        loss, kl = vae_loss(logits, test, mu, logvar)
        samples = vae.sample(300)
        gap = torch.cdist(samples, test).min(dim=1).values.mean()
    print(f"test loss {loss.item():.3f}  kl {kl.item():.3f}  spread of mu {mu.std():.3f}")
    print(f"distance of samples to nearest test digit {gap.item():.3f}")


if __name__ == "__main__":
    main()
