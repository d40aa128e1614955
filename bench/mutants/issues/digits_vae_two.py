import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

LATENT = 8


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
        self.to_mu = nn.Linear(128, LATENT)
        self.to_logvar = nn.Linear(128, LATENT)
        self.decoder = nn.Sequential(nn.Linear(LATENT, 128), nn.ReLU(), nn.Linear(128, 64))

    def encode(self, x):
        h = self.encoder(x)
        return self.to_mu(h), self.to_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + std * torch.randn_like(std)

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def negative_elbo(recon_logits, x, mu, logvar):
    recon = F.binary_cross_entropy_with_logits(recon_logits, x, reduction="sum")
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return recon, kl


def train_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for (x,) in loader:
        optimizer.zero_grad()
        recon, kl = negative_elbo(*forward_args(model, x))
        loss = (recon + kl) / len(x)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


def forward_args(model, x):
    logits, mu, logvar = model(x)
    return logits, x, mu, logvar


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    recon_sum, kl_sum = 0.0, 0.0
    for (x,) in loader:
        recon, kl = negative_elbo(*forward_args(model, x))
        recon_sum += recon.item()
        kl_sum += kl.item()
    n = len(loader.dataset)
    return recon_sum / n, kl_sum / n


@torch.no_grad()
def importance_bound(model, x, samples=200):
    """Importance-weighted bound on log p(x) with the standard normal prior."""
    model.eval()
    mu, logvar = model.encode(x)
    posterior = torch.distributions.Normal(mu, torch.exp(0.5 * logvar))
    prior = torch.distributions.Normal(0.0, 1.0)
    z = posterior.sample((samples,))
    log_px = -F.binary_cross_entropy_with_logits(
        model.decoder(z), x.expand(samples, -1, -1), reduction="none").sum(-1)
    log_w = log_px + prior.log_prob(z).sum(-1) - posterior.log_prob(z).sum(-1)
    return (log_w.logsumexp(0) - torch.log(torch.tensor(float(samples)))).mean().item()


def main():
    torch.manual_seed(6)
    x = torch.tensor(load_digits().data, dtype=torch.float32) / 16.0
    x_train, x_val = train_test_split(x, test_size=0.25, random_state=6)
    train_loader = DataLoader(TensorDataset(x_train), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val), batch_size=256)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 41):
        train_loss = train_epoch(model, train_loader, optimizer)
        if epoch % 8 == 0:
            recon, kl = evaluate(model, val_loader)
            print(f"epoch {epoch:2d}  train -ELBO {train_loss:.3f}  val recon {recon:.3f}  val KL {kl:.3f}")
    print(f"val log-likelihood bound (200 samples) {importance_bound(model, x_val):.3f}")


if __name__ == "__main__":
    main()
