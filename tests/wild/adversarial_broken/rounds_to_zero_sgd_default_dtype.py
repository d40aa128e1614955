"""Everything in bfloat16 by the default dtype, plain SGD with a small step, in a method of a class."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.bfloat16)


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=2e-5, momentum=0.9)

    def learn(self, x, y):
        loss = (self.net(x) - y).square().mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()  # error: update-rounds-to-zero


learner = Learner()
x = torch.randn(64, 12)
y = x[:, :1] * 0.5
for _ in range(60):
    learner.learn(x, y)
