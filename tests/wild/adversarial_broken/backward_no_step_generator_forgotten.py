"""GAN: the generator's step was forgotten."""
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_G = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_D = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for it in range(60):
    real = torch.randn(32, 2) * 0.3 + 1
    fake = G(torch.randn(32, 4))
    opt_D.zero_grad()
    loss_D = bce(D(real), torch.ones(32, 1)) + bce(D(fake.detach()), torch.zeros(32, 1))
    loss_D.backward()
    opt_D.step()
    opt_G.zero_grad()
    loss_G = bce(D(fake), torch.ones(32, 1))
    loss_G.backward()  # error: backward-without-step
    if it % 20 == 0:
        print(it, loss_D.item(), loss_G.item())
