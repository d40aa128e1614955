"""Healthy: RealNVP density estimation: masks as buffers, prior from torch.distributions, negative log-likelihood by hand, best kept in memory."""
import copy

import numpy as np
import torch
from sklearn import datasets
from torch import distributions, nn


class RealNVP(nn.Module):
    def __init__(self, nets, nett, mask, prior):
        super(RealNVP, self).__init__()
        self.prior = prior
        self.mask = nn.Parameter(mask, requires_grad=False)
        self.t = torch.nn.ModuleList([nett() for _ in range(len(mask))])
        self.s = torch.nn.ModuleList([nets() for _ in range(len(mask))])

    def g(self, z):
        x = z
        for i in range(len(self.t)):
            x_ = x * self.mask[i]
            s = self.s[i](x_) * (1 - self.mask[i])
            t = self.t[i](x_) * (1 - self.mask[i])
            x = x_ + (1 - self.mask[i]) * (x * torch.exp(s) + t)
        return x

    def f(self, x):
        log_det_J, z = x.new_zeros(x.shape[0]), x
        for i in reversed(range(len(self.t))):
            z_ = self.mask[i] * z
            s = self.s[i](z_) * (1 - self.mask[i])
            t = self.t[i](z_) * (1 - self.mask[i])
            z = (1 - self.mask[i]) * (z - t) * torch.exp(-s) + z_
            log_det_J -= s.sum(dim=1)
        return z, log_det_J

    def log_prob(self, x):
        z, logp = self.f(x)
        return self.prior.log_prob(z) + logp

    def sample(self, batchSize):
        return self.g(self.prior.sample((batchSize,)))


torch.manual_seed(0)
torch.set_num_threads(1)
nets = lambda: nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(), nn.Linear(48, 48), nn.LeakyReLU(), nn.Linear(48, 2), nn.Tanh())
nett = lambda: nn.Sequential(nn.Linear(2, 48), nn.LeakyReLU(), nn.Linear(48, 48), nn.LeakyReLU(), nn.Linear(48, 2))
masks = torch.from_numpy(np.array([[0, 1], [1, 0]] * 2).astype(np.float32))
prior = distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
flow = RealNVP(nets, nett, masks, prior)

optimizer = torch.optim.Adam([p for p in flow.parameters() if p.requires_grad == True], lr=2e-3)
valid = torch.from_numpy(datasets.make_moons(n_samples=400, noise=0.05, random_state=99)[0].astype(np.float32))
best, best_weights = float("inf"), None
for t in range(201):
    noisy_moons = datasets.make_moons(n_samples=100, noise=0.05, random_state=t)[0].astype(np.float32)
    loss = -flow.log_prob(torch.from_numpy(noisy_moons)).mean()

    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    if t % 50 == 0:
        with torch.no_grad():
            held_out = -flow.log_prob(valid).mean().item()
        if held_out < best:
            best, best_weights = held_out, copy.deepcopy(flow.state_dict())
        print("iter %s:" % t, "loss = %.3f" % loss.item(), "held out = %.3f" % held_out)
flow.load_state_dict(best_weights)
with torch.no_grad():
    print("mean of samples", [round(v, 2) for v in flow.sample(500).mean(0).tolist()])
