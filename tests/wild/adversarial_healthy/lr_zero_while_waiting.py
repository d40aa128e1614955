"""A second optimizer with a schedule that holds it at zero until its turn, which this short run does not reach."""

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

torch.manual_seed(0)
maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
judge = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
opt_m = torch.optim.Adam(maker.parameters(), lr=1e-3)
opt_j = torch.optim.Adam(judge.parameters(), lr=1e-3)
wait = LambdaLR(opt_j, lambda epoch: 0.0 if epoch < 5 else 1.0)
rise = LambdaLR(opt_m, lambda epoch: min(1.0, epoch / 2))
bce = nn.BCEWithLogitsLoss()
for epoch in range(4):
    for _ in range(12):
        real, fake = torch.randn(32, 2) + 2, maker(torch.randn(32, 4))
        opt_j.zero_grad()
        (bce(judge(real), torch.ones(32, 1)) + bce(judge(fake.detach()), torch.zeros(32, 1))).backward()
        opt_j.step()
        opt_m.zero_grad()
        (bce(judge(fake), torch.ones(32, 1)) + (fake.mean(0) - 2).square().sum()).backward()
        opt_m.step()
    wait.step()
    rise.step()
