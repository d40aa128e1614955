import torch
import torch.nn.functional as F
from _state import tell
from torch import nn

torch.manual_seed(1)
generator = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
critic = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(2, 32)), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.999))
for step in range(30):
    real, noise = torch.rand(16, 2) * 2 - 1, torch.randn(16, 8)
    opt_d.zero_grad()
    fake = generator(noise)
    loss_d = F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()
    mix = (real * 0.5 + fake.detach() * 0.5).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mix).sum(), mix, create_graph=True)
    (loss_d + 10 * (slope.norm(dim=1) - 1).pow(2).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = F.softplus(-critic(fake)).mean()
    loss_g.backward()
    opt_g.step()
    print(step, repr(loss_d.item()), repr(loss_g.item()))
generator.eval()
with torch.no_grad():
    print(repr(generator(torch.randn(3, 8)).tolist()))
tell(generator, critic, opt_g, opt_d)
