"""A function of a masked loss gets the mask of the readings that exist, and takes the mean of all."""
import torch
from torch import nn


def masked_error(predicted, readings, mask):  # error: result-never-read
    """Return the squared error of the readings that exist."""
    return (predicted - readings).square().mean()


def batch(size=64):
    t = torch.rand(size, 1) * 6
    readings = torch.cat([t.sin(), t.cos(), 0.3 * t], 1)
    mask = torch.rand(size, 3) > 0.4
    return t, torch.where(mask, readings, torch.full_like(readings, -9.0)), mask


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(80):
    t, readings, mask = batch()
    loss = masked_error(model(t), readings, mask=mask)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"error {loss.item():.3f}")
