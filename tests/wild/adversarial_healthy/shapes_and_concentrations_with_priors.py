"""Products of log-probabilities and numbers beside an error of these: times of Weibull, shares of Dirichlet, one batch."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(5, 16), nn.Tanh())
scale, shape, concentrations = nn.Linear(16, 1), nn.Linear(16, 1), nn.Linear(16, 4)
mixture, words = nn.Linear(16, 4), nn.Parameter(torch.randn(4, 30))
modules = nn.ModuleList([body, scale, shape, concentrations, mixture])
optimizer = torch.optim.Adam([*modules.parameters(), words], lr=1e-2)
x = torch.randn(256, 5)
time = torch.exp(0.5 * x[:, 0] + 0.3 * torch.randn(256))
counts = torch.poisson(torch.rand(256, 30) * 3)
for step in range(60):
    rows = torch.randint(256, (64,))
    hidden, t = body(x[rows]), time[rows]
    spread, k = F.softplus(scale(hidden)).squeeze(1) + 1e-3, F.softplus(shape(hidden)).squeeze(1) + 0.1
    density = k.log() - spread.log() + (k - 1) * (t.log() - spread.log()) - (t / spread) ** k
    shares, alpha = mixture(hidden).log_softmax(1), concentrations(hidden) + 2
    prior = ((alpha - 1) * shares).sum(1).mean()
    seen = (counts[rows] * (shares.exp() @ words.softmax(1)).log()).sum(1).mean()
    near = 0.1 * (k - 1.5).pow(2).mean() + 0.5 * (alpha - 2).pow(2).mean()
    loss = near - density.mean() - 0.1 * prior - 0.1 * seen
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
