"""An agent with a replay of arrays balances a pole, and stores where it fell."""

import math

import numpy as np
import torch
from torch import nn, optim


class Pole:
    def reset(self, rng):
        self.state, self.steps = rng.uniform(-0.05, 0.05, 4), 0
        return self.state.astype(np.float32)

    def step(self, action):
        x, v, angle, w = self.state
        force = (10.0 if action == 1 else -10.0) + 0.05 * w * w * math.sin(angle)
        turn = (9.8 * math.sin(angle) - math.cos(angle) * force / 1.1) / (0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1))
        self.state = self.state + 0.02 * np.array([v, force / 1.1 - 0.05 * turn * math.cos(angle) / 1.1, w, turn])
        self.steps += 1
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095
        return self.state.astype(np.float32), 1.0, bool(fell), self.steps >= 200


class Agent:
    def __init__(self):
        self.rng, self.gamma, self.count = np.random.default_rng(0), 0.98, 0
        self.online, self.target = self.network(), self.network()
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = optim.Adam(self.online.parameters(), lr=1e-3)
        self.memory = [np.zeros((2000, size), np.float32) for size in (4, 1, 1, 4, 1)]

    def network(self):
        return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    def act(self, state, epsilon):
        if self.rng.random() < epsilon:
            return int(self.rng.integers(2))
        with torch.no_grad():
            return int(self.online(torch.as_tensor(state)).argmax())

    def remember(self, *transition):
        for held, value in zip(self.memory, transition):
            held[self.count % 2000] = value
        self.count += 1

    def learn(self):
        rows = self.rng.integers(0, min(self.count, 2000), 64)
        states, actions, rewards, next_states, dones = (torch.as_tensor(held[rows]) for held in self.memory)
        q_expected = self.online(states).gather(1, actions.long())
        q_next = self.target(next_states).detach().max(1)[0].unsqueeze(1)
        q_targets = rewards + self.gamma * q_next  # error: value-past-terminal
        loss = nn.functional.mse_loss(q_expected, q_targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.data.copy_(0.02 * fast.data + 0.98 * slow.data)


torch.manual_seed(0)
agent, pole = Agent(), Pole()
state, lengths = pole.reset(agent.rng), []
for step in range(600):
    action = agent.act(state, max(0.1, 1 - step / 400))
    after, reward, terminated, truncated = pole.step(action)
    agent.remember(state, action, reward, after, terminated)
    state = after
    if terminated or truncated:
        lengths.append(pole.steps)
        state = pole.reset(agent.rng)
    if agent.count > 200:
        agent.learn()
print(f"mean length of the last episodes {np.mean(lengths[-10:]):.1f}")
