"""Healthy: actor-critic with twin critics, two optimizers and a shared trunk; the actor's loss leaves gradients in the critics."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_num_threads(1)


def mlp(i, o, h=48):
    return nn.Sequential(nn.Linear(i, h), nn.ReLU(), nn.Linear(h, o))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.q1, self.q2 = mlp(33, 1), mlp(33, 1)

    def forward(self, obs, act):
        z = torch.cat([self.trunk(obs), act], -1)
        return self.q1(z), self.q2(z)


class Actor(nn.Module):
    """Reads the features of the critic's trunk, detached, as in pixel-based SAC."""

    def __init__(self):
        super().__init__()
        self.net = mlp(32, 2)

    def forward(self, features):
        mu, log_std = self.net(features.detach()).chunk(2, -1)
        dist = torch.distributions.Normal(mu, log_std.clamp(-4, 1).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp


def env_batch(n):
    """One-step problem: the best action is a function of the observation."""
    return torch.randn(n, 4)


def reward_fn(obs, act):
    return -(act - torch.tanh(obs[:, :1] - obs[:, 1:2])).pow(2)


critic = Critic()
critic_target = copy.deepcopy(critic).requires_grad_(False)
actor = Actor()
critic_opt = torch.optim.Adam(critic.parameters(), lr=3e-3)
actor_opt = torch.optim.Adam(actor.parameters(), lr=3e-3)
alpha, gamma, tau = 0.02, 0.5, 0.02

with torch.no_grad():
    probe = env_batch(500)
    start = reward_fn(probe, actor(critic.trunk(probe))[0]).mean().item()

for update in range(120):
    obs, next_obs = env_batch(64), env_batch(64)
    with torch.no_grad():
        act, _ = actor(critic.trunk(obs))
        next_act, next_logp = actor(critic.trunk(next_obs))
        q1_t, q2_t = critic_target(next_obs, next_act)
        target = reward_fn(obs, act) + gamma * (torch.min(q1_t, q2_t) - alpha * next_logp)

    q1, q2 = critic(obs, act)
    critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()

    new_act, logp = actor(critic.trunk(obs))
    actor_loss = (alpha * logp - torch.min(*critic(obs, new_act))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()  # also reaches the critic; its optimizer clears before its next backward
    actor_opt.step()

    with torch.no_grad():
        for p, tp in zip(critic.parameters(), critic_target.parameters()):
            tp.lerp_(p, tau)

with torch.no_grad():
    print(f"mean reward {start:.3f} -> {reward_fn(probe, actor(critic.trunk(probe))[0]).mean().item():.3f}, critic loss {critic_loss.item():.4f}")
