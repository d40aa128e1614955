"""Two sentences as vectors: a model of both beside a baseline of one, with the same arguments."""

import torch
from torch import nn

torch.manual_seed(2)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, premise, hypothesis):
        return self.net(torch.cat([premise, hypothesis, premise * hypothesis], 1))


class HypothesisOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, premise, hypothesis):
        return self.net(hypothesis)


class FromLast(nn.Module):
    """Uses the state before by default only."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 3)

    def forward(self, now, before=None):
        return self.net(now)


premise, hypothesis = torch.randn(900, 8), torch.randn(900, 8)
score = (premise * hypothesis).sum(1) + 5 * hypothesis[:, 0] + 5 * premise[:, 0]
label = (score > -1).long() + (score > 1).long()
for kind in (Both, HypothesisOnly, FromLast):
    model = kind()
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(15):
        for rows in torch.randperm(700).split(50):
            loss = nn.functional.cross_entropy(model(premise[rows], hypothesis[rows]), label[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
    model.eval()
    with torch.no_grad():
        right = (model(premise[700:], hypothesis[700:]).argmax(1) == label[700:]).float().mean().item()
    print(kind.__name__, right)
