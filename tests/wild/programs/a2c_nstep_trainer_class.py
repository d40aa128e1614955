"""Advantage actor-critic without replay: n-step returns from parallel worlds, one network with two heads, a trainer class."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    envs: int = 8
    n_steps: int = 5
    updates: int = 60
    gamma: float = 0.9
    lr: float = 5e-3
    value_coef: float = 0.5
    entropy_coef: float = 0.01
    max_grad_norm: float = 0.5
    seed: int = 3


class PointWorlds:
    """Points on a line that should be moved to the origin."""

    def __init__(self, n, generator):
        self.n, self.generator = n, generator
        self.x = self.fresh(n)
        self.age = torch.zeros(n, dtype=torch.long)

    def fresh(self, n):
        return 2 * torch.rand(n, generator=self.generator) - 1

    def observe(self):
        return torch.stack([self.x, self.x.abs()], dim=1)

    def step(self, action):
        self.x = (self.x + 0.2 * (action - 1).float()).clamp(-2, 2)
        self.age += 1
        reward = -self.x.abs()
        done = self.age >= 12
        self.x = torch.where(done, self.fresh(self.n), self.x)
        self.age = torch.where(done, torch.zeros_like(self.age), self.age)
        return self.observe(), reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.actor = nn.Linear(32, 3)
        self.critic = nn.Linear(32, 1)

    def forward(self, obs):
        h = self.body(obs)
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


class A2C:
    def __init__(self, cfg):
        self.cfg = cfg
        torch.manual_seed(cfg.seed)
        self.worlds = PointWorlds(cfg.envs, torch.Generator().manual_seed(cfg.seed))
        self.net = ActorCritic()
        self.optimizer = torch.optim.RMSprop(self.net.parameters(), lr=cfg.lr, eps=1e-5)
        self.obs = self.worlds.observe()

    def rollout(self):
        log_probs, values, entropies, rewards, dones = [], [], [], [], []
        for _ in range(self.cfg.n_steps):
            dist, value = self.net(self.obs)
            action = dist.sample()
            self.obs, reward, done = self.worlds.step(action)
            log_probs.append(dist.log_prob(action))
            values.append(value)
            entropies.append(dist.entropy())
            rewards.append(reward)
            dones.append(done)
        with torch.no_grad():
            _, bootstrap = self.net(self.obs)
        returns = []
        for reward, done in zip(reversed(rewards), reversed(dones)):
            bootstrap = reward + self.cfg.gamma * bootstrap * (1 - done)
            returns.insert(0, bootstrap)
        return map(torch.stack, (log_probs, values, entropies, returns, rewards))

    def update(self):
        log_probs, values, entropies, returns, rewards = self.rollout()
        advantages = (returns - values).detach()
        loss = -(log_probs * advantages).mean()
        loss = loss + self.cfg.value_coef * F.mse_loss(values, returns) - self.cfg.entropy_coef * entropies.mean()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.net.parameters(), self.cfg.max_grad_norm)
        self.optimizer.step()
        return rewards.mean().item()

    def learn(self):
        history = [self.update() for _ in range(self.cfg.updates)]
        return sum(history[:10]) / 10, sum(history[-10:]) / 10


first, last = A2C(Config()).learn()
print(f"mean reward {first:.3f} at first, {last:.3f} at last")
