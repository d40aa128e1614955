"""A vector quantiser learns its codebook by moving averages, in plain attributes that the checkpoint does not hold."""

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Quantiser(nn.Module):
    def __init__(self, codes, size):
        super().__init__()
        self.codebook = torch.randn(codes, size)
        self.counts = torch.ones(codes)

    def forward(self, z):
        nearest = torch.cdist(z, self.codebook).argmin(1)
        if self.training:
            chosen = nn.functional.one_hot(nearest, len(self.codebook)).float()
            self.counts = 0.95 * self.counts + 0.05 * chosen.sum(0)
            sums = chosen.T @ z.detach() / chosen.sum(0).clamp(min=1)[:, None]
            used = chosen.sum(0)[:, None] > 0
            self.codebook = torch.where(used, 0.9 * self.codebook + 0.1 * sums, self.codebook)
        quantised = self.codebook[nearest]
        return z + (quantised - z).detach(), (z - quantised).pow(2).mean()


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4))
        self.quantiser = Quantiser(16, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 12))

    def forward(self, x):
        quantised, commitment = self.quantiser(self.encoder(x))
        return self.decoder(quantised), commitment


torch.manual_seed(0)
centres = 3 * torch.randn(6, 12)
x = centres[torch.randint(0, 6, (240,))] + 0.3 * torch.randn(240, 12)
train, val = DataLoader(TensorDataset(x[:200]), batch_size=20, shuffle=True), DataLoader(TensorDataset(x[200:]), 20)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
best = float("inf")
for epoch in range(8):
    model.train()
    for (batch,) in train:
        decoded, commitment = model(batch)
        optimizer.zero_grad()
        (nn.functional.mse_loss(decoded, batch) + 0.25 * commitment).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = sum(nn.functional.mse_loss(model(batch)[0], batch).item() for (batch,) in val)
    if error < best:
        best = error
        state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(state, io.BytesIO())  # error: checkpoint-incomplete
print(best)
