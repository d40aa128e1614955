"""Soil moisture from spectra, by functions; the error of the held out samples is that of the last slice."""
import torch
from torch.nn.functional import softplus

torch.manual_seed(0)
spectra = torch.randn(900, 12)
moisture = spectra[:, :3].abs().sum(1, keepdim=True) + 0.1 * torch.randn(900, 1)
held_x, held_y = spectra[700:], moisture[700:]
weights = [torch.randn(12, 24) * 0.3, torch.zeros(24), torch.randn(24, 1) * 0.2, torch.zeros(1)]
for one in weights:
    one.requires_grad_()


def predict(x):
    return softplus(x @ weights[0] + weights[1]) @ weights[2] + weights[3]


def validate(size=64):
    with torch.no_grad():
        for start in range(0, len(held_x), size):
            part, measured = held_x[start : start + size], held_y[start : start + size]
            error = (predict(part) - measured).abs().mean()  # error: sum-overwritten
    return error.item()


optimizer = torch.optim.Adam(weights, lr=0.01)
for epoch in range(4):
    for rows in torch.randperm(700).split(50):
        loss = (predict(spectra[rows]) - moisture[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} error {validate():.3f}")
