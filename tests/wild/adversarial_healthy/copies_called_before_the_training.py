"""Copies of the first weights are called once, before the training: for labels, for a bank, and inside of a module."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Anchored(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
        self.start = copy.deepcopy(self.body).requires_grad_(False)
        self.register_buffer("kept", torch.zeros(0))

    def forward(self, x):
        if self.kept.numel() == 0:
            with torch.no_grad():
                self.kept = self.start(x).mean(0)
        return self.body(x) - self.kept


q, encoder = (nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)) for _ in range(2))
anchored = Anchored()
q_target, momentum_encoder = copy.deepcopy(q), copy.deepcopy(encoder)
x = torch.randn(500, 6)
actions = torch.randint(2, (500, 1))
rewards = (actions == (x[:, :1] > 0)).float()
with torch.no_grad():
    first = rewards + 0.5 * q_target(x.roll(1, 0)).amax(1, keepdim=True)
    bank = F.normalize(momentum_encoder(x), dim=1)
weights = [p for net in (q, encoder, anchored) for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(weights, lr=5e-3)
for step in range(120):
    rows = torch.randint(500, (32,))
    wanted = first[rows] if step < 3 else rewards[rows]
    loss = F.mse_loss(q(x[rows]).gather(1, actions[rows]), wanted)
    loss = loss + F.mse_loss(F.normalize(encoder(x[rows]), dim=1), bank[rows])
    loss = loss + F.mse_loss(anchored(x[rows]), x[rows, :4])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
