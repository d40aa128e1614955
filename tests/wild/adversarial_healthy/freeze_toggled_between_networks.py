"""Networks frozen for each other's turn: both losses first, both steps after, one of them while it is frozen."""

import torch
from torch import nn

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
momentum_encoder = nn.Linear(2, 4).requires_grad_(False)
encoder = nn.Linear(2, 4)
opt_m = torch.optim.Adam([*maker.parameters(), *encoder.parameters()], lr=1e-3)
opt_j = torch.optim.Adam(judge.parameters(), lr=1e-3)
opt_j.add_param_group({"params": list(momentum_encoder.parameters())})
bce = nn.BCEWithLogitsLoss()
for step in range(60):
    real = torch.randn(32, 2) + 2
    fake = maker(torch.randn(32, 4))
    opt_j.zero_grad(set_to_none=False)
    loss_j = bce(judge(real), torch.ones(32, 1)) + bce(judge(fake.detach()), torch.zeros(32, 1))
    loss_j.backward()
    judge.requires_grad_(False)
    opt_m.zero_grad()
    pull = (encoder(fake) - momentum_encoder(fake)).square().mean()
    (bce(judge(fake), torch.ones(32, 1)) + pull).backward()
    opt_m.step()
    opt_j.step()
    judge.requires_grad_(True)
    with torch.no_grad():
        for slow, fast in zip(momentum_encoder.parameters(), encoder.parameters(), strict=True):
            slow.lerp_(fast, 0.05)
