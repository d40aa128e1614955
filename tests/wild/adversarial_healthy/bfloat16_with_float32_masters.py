"""A model in bfloat16 and its optimizer on copies in float32, or an optimizer that keeps the rounding errors."""

import torch
from torch import nn


class Compensated(torch.optim.SGD):
    """SGD on 16 bits that adds the rounding error to the next step."""

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                rest = self.state[p].setdefault("rest", torch.zeros_like(p, dtype=torch.float32))
                target = p.float() + rest - group["lr"] * p.grad.float()
                p.copy_(target)
                rest.copy_(target - p.float())


torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).bfloat16()
masters = [p.detach().float().clone() for p in model.parameters()]
for master in masters:
    master.requires_grad_(True)
optimizer = torch.optim.Adam(masters, lr=1e-5)
other = nn.Linear(8, 1).bfloat16()
compensated = Compensated(other.parameters(), lr=1e-5)
for _ in range(120):
    model.zero_grad()
    nn.functional.mse_loss(model(x.bfloat16()).float(), y).backward()
    for master, p in zip(masters, model.parameters(), strict=True):
        master.grad = p.grad.float()
    optimizer.step()
    with torch.no_grad():
        for master, p in zip(masters, model.parameters(), strict=True):
            p.copy_(master)
    compensated.zero_grad()
    nn.functional.mse_loss(other(x.bfloat16()).float(), y).backward()
    compensated.step()
