"""Heads that learn which samples are wrong weigh a loss by their complement, a sample at a time and in batches."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Doubting(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.net = nn.Linear(4, outputs)
        self.doubt = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())

    def forward(self, x):
        return self.net(x), self.doubt(x).squeeze(-1)


regression, classifier = Doubting(1), Doubting(3)
optimizer = torch.optim.SGD([*regression.parameters(), *classifier.parameters()], lr=0.05)
for _ in range(80):  # one sample at a time
    x = torch.randn(4)
    noisy = float(x[0] > 0)
    y = x.sum() + noisy * torch.randn(())
    out, doubt = regression(x)
    loss = (y - out.squeeze()) ** 2 * (1 - doubt) + (doubt - noisy) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

x = torch.randn(400, 4)
flipped = torch.rand(400) < 0.2
labels = torch.where(flipped, (x[:, :3].argmax(1) + 1) % 3, x[:, :3].argmax(1))
for _ in range(6):
    for rows in torch.randperm(400).split(40):
        scores, doubt = classifier(x[rows])
        right = torch.ones_like(doubt) - doubt
        each = F.cross_entropy(scores, labels[rows], reduction="none")
        loss = (each * right).mean() + F.mse_loss(doubt, flipped[rows].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"{loss.item():.3f}")
