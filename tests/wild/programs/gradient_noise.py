"""Healthy: annealed noise added to the gradients by hand between backward and step (Neelakantan et al., Langevin style)."""
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def parity_like(n):
    x = torch.randn(n, 6)
    return x, ((x[:, 0] * x[:, 1] + 0.5 * x[:, 2]) > 0).float().unsqueeze(1)


class NoisyTrainer:
    def __init__(self, net, lr=0.1, eta=0.01, gamma=0.55):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.loss = nn.BCEWithLogitsLoss()
        self.eta, self.gamma, self.t = eta, gamma, 0

    def step(self, x, y):
        self.opt.zero_grad()
        loss = self.loss(self.net(x), y)
        loss.backward()
        std = (self.eta / (1 + self.t) ** self.gamma) ** 0.5
        for p in self.net.parameters():
            p.grad += std * torch.randn_like(p.grad)
        self.opt.step()
        self.t += 1
        return loss.item()


trainer = NoisyTrainer(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))
x_val, y_val = parity_like(1000)
for step in range(160):
    loss = trainer.step(*parity_like(64))
    if step % 40 == 39:
        with torch.no_grad():
            acc = ((trainer.net(x_val) > 0) == (y_val > 0.5)).float().mean().item()
        print(f"step {step} loss {loss:.4f} val acc {acc:.4f}")
