"""Operands of a loss without a gradient, on purpose: replaced values, baselines, constants, another network's score."""

import math

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
x = torch.randn(256, 6)
y = (x.sum(1) > 0).long()
model, critic, value = nn.Linear(6, 2), nn.Linear(2, 1), nn.Linear(6, 1)
optimizer = torch.optim.Adam([*model.parameters(), *value.parameters()], lr=1e-2)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-2)

for step in range(40):
    batch = torch.randint(0, 256, (64,))
    logits = model(x[batch])
    hard = F.one_hot(logits.argmax(1), 2).float()
    chosen = logits.softmax(1)
    straight = chosen + (hard - chosen).detach()
    fit = F.cross_entropy(logits, y[batch])
    with torch.no_grad():
        reference = critic(model(x[batch])).mean()
    baseline = value(x[batch]).squeeze(1)
    reward = (logits.argmax(1) == y[batch]).float()
    chance = torch.distributions.Categorical(logits=logits)
    policy = -(chance.log_prob(logits.argmax(1)) * (reward - baseline.detach())).mean()
    warm = 0.01 * straight.square().mean()
    if step < 20:
        warm = warm.detach()
    loss = fit + 0.1 * policy + F.mse_loss(baseline, reward) + warm + reference - math.log(2)
    loss = loss + (F.l1_loss(chosen[:, 1], y[batch].float()) - fit).detach() * 0.1
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

    real = critic(F.one_hot(y[batch], 2).float()).mean()
    fake = critic(model(x[batch]).softmax(1).detach()).mean()
    wasserstein = fake - real + 0.1 * critic.weight.square().sum()
    critic_optimizer.zero_grad()
    wasserstein.backward()
    critic_optimizer.step()
print(loss.item(), wasserstein.item())
