"""Vector-quantised autoencoder on digits, four codes per image."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader


class VectorQuantizer(nn.Module):
    """Nearest code with straight-through gradient."""

    def __init__(self, n_codes=16, dim=6, beta=0.25):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(n_codes, dim) * 0.5)
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(dim=-1)
        q = self.codes[index]
        codebook = nn.functional.mse_loss(q, z.detach())
        commitment = nn.functional.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return q, codebook + self.beta * commitment, index


class VQAutoencoder(nn.Module):
    """Dense encoder and decoder around the quantiser."""

    def __init__(self, slots=4, dim=6):
        super().__init__()
        self.slots, self.dim = slots, dim
        self.enc = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, slots * dim))
        self.vq = VectorQuantizer(dim=dim)
        self.dec = nn.Sequential(nn.Linear(slots * dim, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x):
        z = self.enc(x).view(-1, self.slots, self.dim)
        q, vq_loss, index = self.vq(z)
        return self.dec(q.flatten(1)), vq_loss, index


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        rec_sum = vq_sum = 0.0
        for x in loader:
            out, vq_loss, _ = model(x)
            rec = nn.functional.mse_loss(out, x)
            optimizer.zero_grad()
            (rec + vq_loss).backward()
            optimizer.step()
            rec_sum += rec.item()
            vq_sum += vq_loss.item()
        if epoch % 5 == 0:
            print(f"epoch {epoch} reconstruction {rec_sum / len(loader):.5f} vq {vq_sum / len(loader):.5f}")


if __name__ == "__main__":
    torch.manual_seed(28)
    data = torch.tensor(load_digits().data / 16, dtype=torch.float32)
    train_x, test_x = train_test_split(data, test_size=0.3, random_state=28)
    model = VQAutoencoder()
    train(model, DataLoader(train_x, batch_size=64, shuffle=True), 20)
    model.eval()
    with torch.no_grad():
        out, _, index = model(test_x)
        error = nn.functional.mse_loss(out, test_x)
    print(f"test reconstruction {error:.5f} codes in use {len(index.unique())}")
