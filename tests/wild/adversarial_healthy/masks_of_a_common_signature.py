"""Healthy: losses with one signature, of which some need no mask; a mask of ones; a method that takes a mask for others."""
import torch
from torch import nn


def plain(predicted, wanted, mask):
    return (predicted - wanted).square().mean()


def masked(predicted, wanted, mask):
    return ((predicted - wanted).square() * mask).sum() / mask.sum()


def whole(predicted, wanted, mask=None):
    return (predicted - wanted).abs().mean()


def checked(predicted, wanted, mask):
    names = locals()
    return ((predicted - wanted).abs() * names["mask"]).mean()


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x, mask):
        return self.mix(self.line(x), mask)

    def mix(self, x, mask):
        return x.tanh()


LOSSES = {"plain": plain, "masked": masked}
torch.manual_seed(0)
model = Layer()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for name, loss_of in LOSSES.items():
    for step in range(15):
        x, mask = torch.randn(32, 4), torch.rand(32, 4) > 0.3
        out = model(x, mask)
        ones = torch.ones(32, 4)
        loss = loss_of(out, x, mask) + 0.1 * whole(out, x, ones) + 0.1 * checked(out, x, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{name} {loss.item():.3f}")
