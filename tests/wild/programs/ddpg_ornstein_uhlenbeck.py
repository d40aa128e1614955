"""DDPG: deterministic actor trained through the critic, both with target copies; only the critic's own loss moves the critic."""
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(2, 32), nn.Linear(32, 1)

    def forward(self, s):
        return torch.tanh(self.l2(F.relu(self.l1(s))))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(3, 32), nn.Linear(32, 1)

    def forward(self, s, a):
        return self.l2(F.relu(self.l1(torch.cat([s, a], 1))))


class OUNoise:
    def __init__(self, rng, theta=0.15, sigma=0.3):
        self.rng, self.theta, self.sigma, self.value = rng, theta, sigma, 0.0

    def __call__(self):
        self.value += -self.theta * self.value + self.sigma * self.rng.standard_normal()
        return self.value


class DDPG:
    def __init__(self, tau=0.02, gamma=0.9):
        self.actor, self.critic = Actor(), Critic()
        self.actor_target, self.critic_target = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-3, weight_decay=1e-4)
        self.tau, self.gamma = tau, gamma

    @torch.no_grad()
    def select_action(self, s):
        return self.actor(torch.as_tensor(s, dtype=torch.float32)[None]).item()

    def train(self, s, a, r, s2):
        target_q = self.critic_target(s2, self.actor_target(s2))
        target_q = r + self.gamma * target_q.detach()
        critic_loss = F.mse_loss(self.critic(s, a), target_q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()

        actor_loss = -self.critic(s, self.actor(s)).mean()
        self.actor_optimizer.zero_grad()
        actor_loss.backward()
        self.actor_optimizer.step()

        for net, target in ((self.critic, self.critic_target), (self.actor, self.actor_target)):
            for param, target_param in zip(net.parameters(), target.parameters()):
                target_param.data.copy_(self.tau * param.data + (1 - self.tau) * target_param.data)
        return critic_loss.item()


def main(steps=400, warmup=50, batch=32):
    rng = np.random.default_rng(2)
    torch.manual_seed(2)
    agent, noise, log = DDPG(), OUNoise(rng), []
    state, storage = rng.normal(size=2), {k: [] for k in "sarn"}
    for t in range(steps):
        action = float(np.clip(agent.select_action(state) + noise(), -1, 1)) if t >= warmup else rng.uniform(-1, 1)
        following = np.array([0.8 * state[0] + 0.5 * action, 0.95 * state[1] + 0.1 * rng.standard_normal()])
        reward = -abs(following[0] - following[1])
        for key, value in zip("sarn", (state, [action], [reward], following)):
            storage[key].append(value)
        state = following
        log.append(reward)
        if t >= warmup:
            index = rng.integers(len(log), size=batch)
            loss = agent.train(*(torch.tensor(np.asarray(storage[k], dtype=np.float32)[index]) for k in "sarn"))
    print(f"reward {np.mean(log[:100]):.3f} -> {np.mean(log[-100:]):.3f}, critic loss {loss:.4f}")


if __name__ == "__main__":
    main()
