# encoder and critic that cooperate in turns (mutual information, with the positive term for the encoder)
import torch
from torch import nn
torch.manual_seed(0)
F = nn.functional
x = torch.randn(1024, 4) @ torch.randn(4, 12) + .1 * torch.randn(1024, 12)
class T(nn.Module):
    def __init__(s):
        super().__init__(); s.f = nn.Sequential(nn.Linear(12 + 3, 64), nn.ReLU(), nn.Linear(64, 1))
    def forward(s, z, x): return s.f(torch.cat([z, x], 1))
enc = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3), nn.Tanh()); critic = T()
oe = torch.optim.Adam(enc.parameters(), 1e-3); oc = torch.optim.Adam(critic.parameters(), 1e-3)
for ep in range(12):
    for i in torch.randperm(1024).split(64):
        xb = x[i]
        z = enc(xb).detach()
        pos = critic(z, xb); neg = critic(z[torch.randperm(len(z))], xb)
        lc = F.softplus(-pos).mean() + F.softplus(neg).mean()
        oc.zero_grad(); lc.backward(); oc.step()
        z = enc(xb)
        le = F.softplus(-critic(z, xb)).mean()
        oe.zero_grad(); le.backward(); oe.step()
    print(ep, lc.item(), le.item())
