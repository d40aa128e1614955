"""The encoder and decoder of a VAE are called one by one; the wrapper's eval() is never undone."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))
        self.decoder = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 12))

    def elbo(self, x):
        mu, logvar = self.encoder(x).chunk(2, dim=1)  # error: train-mode-not-restored
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        return F.mse_loss(self.decoder(z), x, reduction="none").sum(1).mean() + kl


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
train = DataLoader(TensorDataset(torch.randn(96, 12)), batch_size=16, shuffle=True)
test = DataLoader(TensorDataset(torch.randn(32, 12)), batch_size=16)
for epoch in range(3):
    for (x,) in train:
        loss = vae.elbo(x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    vae.eval()
    with torch.no_grad():
        print(epoch, sum(vae.elbo(x).item() for (x,) in test) / len(test))
