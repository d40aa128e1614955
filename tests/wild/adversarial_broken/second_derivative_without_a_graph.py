"""A network for the equation of Burgers, in a class: its second derivative has no graph."""

import torch
from torch import nn
torch.manual_seed(0)


class Burgers(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
        self.nu = 0.01
    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))
    @staticmethod
    def gradient(out, inp, keep=True):
        return torch.autograd.grad(out, inp, torch.ones_like(out), create_graph=keep, retain_graph=True)[0]
    def residual(self, x, t):
        u = self(x, t)
        u_t = self.gradient(u, t)
        u_x = self.gradient(u, x)
        u_xx = self.gradient(u_x, x, keep=False)  # error: term-without-gradient
        return u_t + u * u_x - self.nu * u_xx


class Solver:
    def __init__(self):
        self.model = Burgers()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.mse = nn.MSELoss()
    def train(self, steps):
        for i in range(steps):
            x = (torch.rand(64, 1) * 2 - 1).requires_grad_()
            t = torch.rand(64, 1).requires_grad_()
            x0 = torch.rand(32, 1) * 2 - 1
            f = self.model.residual(x, t)
            loss_f = self.mse(f, torch.zeros_like(f))
            loss_0 = self.mse(self.model(x0, torch.zeros(32, 1)), -torch.sin(torch.pi * x0))
            loss = loss_f + loss_0
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
Solver().train(60)
