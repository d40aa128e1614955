"""Outputs that are equal for all samples at first: a last layer of zeros under a warm-up, a gate that opens late."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(5, 16), nn.ReLU()), nn.Linear(16, 2)
        self.gate, self.open = nn.Parameter(torch.ones(1)), 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.open * self.gate * self.body(x))


gated = Gated()
value = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
nn.init.zeros_(value[2].weight)
actor = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2), nn.Hardtanh())
with torch.no_grad():
    actor[2].bias += 20.0
optimizer = torch.optim.Adam([*gated.parameters(), *value.parameters(), *actor.parameters()], lr=1e-3)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, step / 150))
for step in range(260):
    x = torch.randn(16, 5)
    gated.open = float(step > 60)
    reward = torch.zeros(16, 1) if step < 120 else x[:, :1]
    loss = F.cross_entropy(gated(x), (x[:, 0] > 0).long()) + F.mse_loss(value(x), reward)
    loss = loss - 0.01 * actor(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
