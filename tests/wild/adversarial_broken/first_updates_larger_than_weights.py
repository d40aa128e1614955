"""A rate of 3 where 3e-3 was meant, of AdamW in a function and of SGD with momentum in a class."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 12)
y = (x[:, :3] * 2).sin().sum(1, keepdim=True)


def fit_with_adamw():
    net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))
    adamw = torch.optim.AdamW(net.parameters(), lr=3.0)  # error: update-exceeds-weights
    for i in range(40):
        adamw.zero_grad()
        loss = (net(x[i::40]) - y[i::40]).square().mean()
        loss.backward()
        adamw.step()
    return loss.item()


class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
        self.optimizer = torch.optim.RMSprop(self.net.parameters(), lr=3.0)  # error: update-exceeds-weights

    def step(self, rows):
        def closure():
            self.optimizer.zero_grad()
            loss = nn.functional.cross_entropy(self.net(x[rows]), y[rows, 0].add(1.5).long().clamp(0, 2))
            loss.backward()
            return loss

        closure()
        self.optimizer.step()


print(fit_with_adamw())
trainer = Trainer()
for _ in range(30):
    trainer.step(torch.randint(0, 512, (64,)))
