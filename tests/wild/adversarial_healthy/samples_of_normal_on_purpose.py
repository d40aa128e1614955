"""Draws by `torch.normal`: a policy with a density by hand, a decoder that only watches, noise, evolution."""

import math

import torch
from torch import nn

torch.manual_seed(0)

# A policy gradient with a critic of state and action, both in one loss.
policy, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-2)
for _ in range(30):
    state = torch.randn(32, 4)
    mean, log_scale = policy(state).chunk(2, dim=1)
    scale = log_scale.exp()
    action = torch.normal(mean, scale).detach()
    value = critic(torch.cat([state, action], dim=1)).squeeze(1)
    reward = -(action.squeeze(1) - state[:, 0]).square()
    density = -((action - mean) / scale).square() / 2 - log_scale - math.log(math.sqrt(2 * math.pi))
    loss = -((reward - value).detach() * density.squeeze(1)).mean() + (value - reward).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# A classifier of codes with noise, and a decoder that shows the codes, without an effect on them.
encoder, head, viewer = nn.Linear(6, 8), nn.Linear(4, 3), nn.Linear(4, 6)
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters(), *viewer.parameters()], lr=1e-2)
for _ in range(30):
    x = torch.randn(32, 6)
    mean, log_scale = encoder(x).chunk(2, dim=1)
    scale = log_scale.exp()
    shown = viewer(torch.normal(mean.detach(), scale.detach()))
    told = head(mean + scale * torch.randn_like(scale))
    divergence = (mean.square() + scale.square() - 2 * log_scale).mean()
    loss = nn.functional.cross_entropy(told, x[:, :3].argmax(1)) + (shown - x).square().mean() + 0.01 * divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

# Noise on inputs and on targets.
net = nn.Linear(6, 6)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(32, 6)
    noisy, target = torch.normal(x, 0.1), torch.normal(x, torch.full_like(x, 0.1))
    optimizer.zero_grad()
    (net(noisy) - target).square().mean().backward()
    optimizer.step()

# Evolution strategies: parameters are drawn, and no gradient is needed.
weight = torch.zeros(6)
for _ in range(30):
    tried = torch.normal(weight.expand(16, 6), 0.1)
    gain = -(tried - 1).square().sum(1)
    weight = weight + 0.05 * ((gain - gain.mean())[:, None] * (tried - weight)).mean(0) / 0.01
print(weight)
