"""A conditional autoencoder in a class: its method draws with `sample`, and the label is put beside the sample."""

import torch
from torch import distributions, nn

torch.manual_seed(0)
kinds = torch.randint(0, 3, (256,))
signals = torch.randn(3, 10)[kinds] + 0.3 * torch.randn(256, 10)


class Conditional(nn.Module):
    def __init__(self, hidden=4):
        super().__init__()
        self.read = nn.Sequential(nn.Linear(13, 32), nn.ReLU())
        self.centre, self.spread = nn.Linear(32, hidden), nn.Linear(32, hidden)
        self.write = nn.Sequential(nn.Linear(hidden + 3, 32), nn.ReLU(), nn.Linear(32, 10))

    def code(self, features):
        made = distributions.Normal(self.centre(features), nn.functional.softplus(self.spread(features)) + 1e-3)
        return distributions.Independent(made, 1)

    def forward(self, signal, kind):
        given = nn.functional.one_hot(kind, 3).float()
        q = self.code(self.read(torch.cat([signal, given], 1)))
        z = q.sample()  # error: sample-without-gradient
        return self.write(torch.cat([z, given], 1)), q


def bound(model, signal, kind):
    made, q = model(signal, kind)
    prior = distributions.Independent(distributions.Normal(torch.zeros(4), torch.ones(4)), 1)
    return (made - signal).square().sum(1).mean() + distributions.kl_divergence(q, prior).mean()


model = Conditional()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for _ in range(8):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        bound(model, signals[rows], kinds[rows]).backward()
        optimizer.step()
