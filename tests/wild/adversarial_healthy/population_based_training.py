"""Population-based training: losers take over weights and optimizer state of winners."""
import copy

import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(200, 5)
Y = X.pow(2).sum(1, keepdim=True)


class Member:
    def __init__(self, lr):
        self.net = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=lr, momentum=0.9)
        self.score = float("inf")

    def train(self, steps):
        for _ in range(steps):
            i = torch.randint(0, 160, (32,))
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(X[i]), Y[i]).backward()
            self.opt.step()

    @torch.no_grad()
    def evaluate(self):
        self.score = nn.functional.mse_loss(self.net(X[160:]), Y[160:]).item()

    def exploit(self, other):
        self.net = copy.deepcopy(other.net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=other.opt.param_groups[0]["lr"] * 1.2, momentum=0.9)
        self.opt.load_state_dict(copy.deepcopy(other.opt.state_dict()))


population = [Member(lr) for lr in (1e-4, 1e-3, 5e-3)]
for generation in range(5):
    for member in population:
        member.train(10)
        member.evaluate()
    population.sort(key=lambda m: m.score)
    population[-1].exploit(population[0])
    print(generation, [round(m.score, 2) for m in population])
