"""A sub-network borrowed from another model is kept in a list so that it is not registered twice."""
import torch
from torch import nn

torch.manual_seed(0)


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x):
        return self.dec(torch.tanh(self.enc(x)))


class Prior(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.net = nn.Linear(2, 4)
        self._borrowed = [decoder]

    def forward(self, z):
        return self._borrowed[0](torch.tanh(self.net(z)))


ae = Autoencoder()
prior = Prior(ae.dec)
opt = torch.optim.Adam([*ae.parameters(), *prior.parameters()], lr=1e-2)
for step in range(30):
    x = torch.randn(16, 8)
    loss = nn.functional.mse_loss(ae(x), x) + 0.1 * prior(torch.randn(16, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
