"""Soil moisture from spectra, by functions: errors of slices are overwritten where they are not the figure."""
import torch
from torch.nn.functional import softplus

torch.manual_seed(0)
spectra = torch.randn(900, 12)
moisture = spectra[:, :3].abs().sum(1, keepdim=True) + 0.1 * torch.randn(900, 1)
held_x, held_y = spectra[700:], moisture[700:]
weights = [torch.randn(12, 24) * 0.3, torch.zeros(24), torch.randn(24, 1) * 0.2, torch.zeros(1)]
for one in weights:
    one.requires_grad_()
kept = []


def predict(x):
    return softplus(x @ weights[0] + weights[1]) @ weights[2] + weights[3]


def keep(error):
    kept.append(error.item())
    return error


def by_a_function(size=50):
    """The function keeps the error of each slice."""
    kept.clear()
    for start in range(0, len(held_x), size):
        error = keep((predict(held_x[start : start + size]) - held_y[start : start + size]).abs().mean())
    return sum(kept) / len(kept), error


def of_growing_parts():
    """Each pass has all samples of the one before."""
    for end in range(50, 201, 50):
        error = (predict(held_x[:end]) - held_y[:end]).abs().mean()
    return error


def shown(size=50):
    for start in range(0, len(held_x), size):
        part, measured = held_x[start : start + size], held_y[start : start + size]
        error = (predict(part) - measured).abs().mean()
    print(f"the last slice: {error:.3f}")


optimizer = torch.optim.Adam(weights, lr=0.01)
for epoch in range(4):
    for rows in torch.randperm(700).split(50):
        loss = (predict(spectra[rows]) - moisture[rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(f"epoch {epoch}", *by_a_function(), of_growing_parts())
        shown()
