# says: `self.opt_d.step()` changed weights
# says: changed `self.disc.0.weight` (1, 8)
import torch
from torch import nn


class Gan:
    def __init__(self):
        self.gen = nn.Sequential(nn.Linear(2, 8), nn.Tanh())
        self.disc = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
        self.opt_g = torch.optim.SGD(self.gen.parameters(), lr=0.1)
        self.opt_d = torch.optim.SGD(self.disc.parameters(), lr=0.1)
        self.bce = nn.BCELoss()

    def step(self, real):
        fake = self.gen(torch.randn(4, 2))
        on_fake = self.disc(fake)  # related
        d_loss = self.bce(self.disc(real), torch.ones(4, 1)) + self.bce(on_fake, torch.zeros(4, 1))
        g_loss = self.bce(on_fake, torch.ones(4, 1))
        self.opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        self.opt_d.step()  # related
        self.opt_g.zero_grad()
        g_loss.backward()  # died: modified-in-place
        self.opt_g.step()


gan = Gan()
for _ in range(3):
    gan.step(torch.randn(4, 8))
