# says: `opt_d.step()` changed weights
# says: changed `netD.2.weight` (1, 64)
# says: expected: version 1
# says: call `netD(fake)` again after `opt_d.step()`
import torch
from torch import nn

torch.manual_seed(0)
netG = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 100))
netD = nn.Sequential(nn.Linear(100, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(netG.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(netD.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()

for step in range(20):
    real = torch.randn(32, 100)
    fake = netG(torch.randn(32, 16))
    score = netD(fake)  # related
    loss_g = bce(score, torch.ones(32, 1))

    opt_d.zero_grad()
    loss_d = bce(netD(real), torch.ones(32, 1)) + bce(netD(fake.detach()), torch.zeros(32, 1))
    loss_d.backward()
    opt_d.step()  # related

    opt_g.zero_grad()
    loss_g.backward()  # died: modified-in-place
    opt_g.step()
