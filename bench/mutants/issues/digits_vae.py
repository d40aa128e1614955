"""Variational autoencoder on binarised digits."""
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LATENT = 8


class VAE(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(64, hidden), nn.ReLU())
        self.mu = nn.Linear(hidden, LATENT)
        self.logvar = nn.Linear(hidden, LATENT)
        self.dec = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, 64))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.dec(z), mu, logvar


def elbo_terms(logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = torch.mean(torch.sum(-0.5 * (1 + logvar - mu.pow(2) - logvar.exp()), dim=1))
    return recon, kl


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    recon_sum, kl_sum, n = 0.0, 0.0, 0
    means = []
    for (x,) in loader:
        logits, mu, logvar = model(x)
        recon, kl = elbo_terms(logits, x, mu, logvar)
        recon_sum += recon.item() * len(x)
        kl_sum += kl.item() * len(x)
        n += len(x)
        means.append(mu)
    return recon_sum / n, kl_sum / n, torch.cat(means).std(0).mean().item()


@torch.no_grad()
def sample_distance(model, real, n=400):
    """Mean distance of prior samples to their nearest real digit."""
    model.eval()
    images = torch.sigmoid(model.dec(torch.randn(n, LATENT)))
    return torch.cdist(images, real).min(1).values.mean().item()


def main():
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X > 7, dtype=torch.float32)
    X_train, X_val = train_test_split(X, test_size=0.25, random_state=0, stratify=y)
    train_loader = DataLoader(TensorDataset(X_train), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(X_val), batch_size=256)

    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 31):
        model.train()
        for (x,) in train_loader:
            optimizer.zero_grad()
            logits, mu, logvar = model(x)
            recon, kl = elbo_terms(logits, x, mu, logvar)
            loss = recon + kl
            loss.backward()
            optimizer.step()
        if epoch % 5 == 0:
            recon, kl, spread = evaluate(model, val_loader)
            print(
                f"epoch {epoch:2d}  val recon {recon:.3f}  kl {kl:.3f}  "
                f"-elbo {recon + kl:.3f}  std of means {spread:.2f}"
            )
    print(f"distance of samples to real digits: {sample_distance(model, X_val):.4f}")


if __name__ == "__main__":
    main()
