"""Samples that need no gradient: policy gradients with a critic of actions, scheduled sampling, a stage that is cut."""

import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(0)

policy, critic = nn.Linear(4, 2), nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-2)
for _ in range(30):
    state = torch.randn(32, 4)
    mean, log_scale = policy(state).chunk(2, dim=1)
    chosen = Normal(mean, log_scale.exp())
    action = chosen.sample()
    value = critic(torch.cat([state, action], dim=1)).squeeze(1)
    reward = -(action.squeeze(1) - state[:, 0]).square()
    gain = (reward - value).detach()
    loss = -(gain * chosen.log_prob(action).squeeze(1)).mean() + (value - reward).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

series = torch.randn(64, 12, 1).cumsum(1)
cell, out = nn.GRUCell(1, 16), nn.Linear(16, 2)
optimizer = torch.optim.Adam([*cell.parameters(), *out.parameters()], lr=1e-2)
for epoch in range(10):
    loss, hidden, given = 0.0, torch.zeros(64, 16), series[:, 0]
    for at in range(1, 12):
        hidden = cell(given, hidden)
        mean, log_scale = out(hidden).chunk(2, dim=1)
        predicted = Normal(mean, log_scale.exp())
        loss = loss - predicted.log_prob(series[:, at]).mean() / 11
        given = (predicted if at % 2 else Normal(mean, log_scale.exp())).sample() if epoch > 2 else series[:, at]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

encoder, decoder, judge = nn.Linear(6, 4), nn.Linear(2, 6), nn.Linear(2, 1)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
judging = torch.optim.Adam(judge.parameters(), lr=1e-2)
for _ in range(30):
    x = torch.randn(32, 6)
    mean, log_scale = encoder(x).chunk(2, dim=1)
    q = Normal(mean, log_scale.exp())
    told = judge(q.sample())
    judging.zero_grad()
    (told.square().mean() + judge(torch.randn(32, 2)).exp().mean()).backward()
    judging.step()
    loss = (decoder(q.rsample()) - x).square().mean() + 0.1 * kl_divergence(q, Normal(0.0, 1.0)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
