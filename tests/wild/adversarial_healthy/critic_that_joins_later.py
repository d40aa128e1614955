"""Adversarial heads in a list that another trainer owns: their optimizer is built after a warm-up of the encoder."""

import torch, torch.nn as nn, torch.nn.functional as F

torch.manual_seed(0)


class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.out = nn.Linear(32, 3)
        self.critics = [nn.Linear(32, 2)]

    def training_step(self, x, y, d, lam):
        h = self.body(x)
        return F.cross_entropy(self.out(h), y) - lam * F.cross_entropy(self.critics[0](h), d)

    def critic_step(self, x, d):
        return F.cross_entropy(self.critics[0](self.body(x).detach()), d)


enc = Enc()
opt = torch.optim.Adam(enc.parameters(), 3e-3)
M = torch.randn(8, 3)
copt = None
for step in range(200):
    x = torch.randn(64, 8)
    y = (x @ M).argmax(1)
    d = (x[:, 0] > 0).long()
    lam = 0.0 if step < 60 else 0.1
    if step == 60:
        copt = torch.optim.Adam(enc.critics[0].parameters(), 3e-3)
    if copt is not None:
        for _ in range(2):
            c = enc.critic_step(x, d)
            copt.zero_grad()
            c.backward()
            copt.step()
    loss = enc.training_step(x, y, d, lam)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), c.item())
