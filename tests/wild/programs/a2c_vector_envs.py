"""Healthy: A2C over parallel environments: n-step rollouts with graphs, bootstrapped returns, one summed loss, RMSprop, lr by hand."""
import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical


class LineWorlds:
    """n agents on a line; the goal moves after it was reached."""

    def __init__(self, n, seed):
        self.rng, self.n = np.random.default_rng(seed), n
        self.pos = self.rng.integers(-5, 6, n)
        self.goal = self.rng.integers(-5, 6, n)
        self.t = np.zeros(n, dtype=int)

    def obs(self):
        return np.stack([self.pos / 5, self.goal / 5, np.sign(self.goal - self.pos)], 1).astype(np.float32)

    def step(self, action):
        self.pos = np.clip(self.pos + action - 1, -5, 5)
        self.t += 1
        hit = self.pos == self.goal
        done = hit | (self.t >= 12)
        reward = hit.astype(np.float32) - 0.02
        for i in np.flatnonzero(done):
            self.goal[i], self.t[i] = self.rng.integers(-5, 6), 0
        return self.obs(), reward, done.astype(np.float32)


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 32), nn.Tanh())
        self.pi, self.v = nn.Linear(32, 3), nn.Linear(32, 1)
        nn.init.orthogonal_(self.pi.weight, 0.01)

    def act(self, obs):
        h = self.body(torch.from_numpy(obs))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)

    forward = act


torch.manual_seed(1)
torch.set_num_threads(1)
envs, model = LineWorlds(16, seed=1), ActorCritic()
optimizer = torch.optim.RMSprop(model.parameters(), lr=7e-3, alpha=0.99, eps=1e-5)
updates, horizon, gamma = 90, 8, 0.95
obs, history = envs.obs(), []
for update in range(updates):
    optimizer.param_groups[0]["lr"] = 7e-3 * (1 - update / updates)
    log_probs, values, rewards, masks, entropy = [], [], [], [], 0.0
    for _ in range(horizon):
        dist, value = model(obs)
        action = dist.sample()
        obs, reward, done = envs.step(action.numpy())
        log_probs.append(dist.log_prob(action))
        entropy = entropy + dist.entropy().mean()
        values.append(value)
        rewards.append(torch.from_numpy(reward))
        masks.append(torch.from_numpy(1 - done))
    with torch.no_grad():
        R = model(obs)[1]
    returns = []
    for r, m in zip(reversed(rewards), reversed(masks)):
        R = r + gamma * R * m
        returns.insert(0, R)
    log_probs, returns, values = torch.cat(log_probs), torch.cat(returns).detach(), torch.cat(values)
    advantage = returns - values
    actor_loss = -(log_probs * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss - 0.01 * entropy / horizon

    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    history.append(torch.stack(rewards).mean().item())
print(f"reward per step: first 10 updates {np.mean(history[:10]):.3f}, last 10 {np.mean(history[-10:]):.3f}")
