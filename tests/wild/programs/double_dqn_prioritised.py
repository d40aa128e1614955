"""Healthy: dueling double DQN, prioritised replay with importance weights, hard target update every k steps, learning starts late."""
import copy

import numpy as np
import torch
from torch import nn

SEED, BUFFER, BATCH, TARGET_EVERY, START = 3, 1000, 32, 40, 100
rng = np.random.RandomState(SEED)
torch.manual_seed(SEED)
torch.set_num_threads(1)


class Dueling(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(obs, 32), nn.ReLU())
        self.advantage = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, actions))
        self.value = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        x = self.feature(x)
        a, v = self.advantage(x), self.value(x)
        return v + a - a.mean(dim=1, keepdim=True)


class PrioritisedBuffer:
    def __init__(self, size, alpha=0.6):
        self.size, self.alpha, self.data, self.pos = size, alpha, [], 0
        self.priorities = np.zeros(size, np.float32)

    def push(self, transition):
        top = self.priorities.max() if self.data else 1.0
        if len(self.data) < self.size:
            self.data.append(transition)
        else:
            self.data[self.pos] = transition
        self.priorities[self.pos] = top
        self.pos = (self.pos + 1) % self.size

    def sample(self, n, beta):
        p = self.priorities[:len(self.data)] ** self.alpha
        p /= p.sum()
        index = rng.choice(len(self.data), n, p=p)
        weights = (len(self.data) * p[index]) ** -beta
        batch = [torch.as_tensor(np.stack(column)) for column in zip(*(self.data[i] for i in index))]
        return batch, index, torch.as_tensor(weights / weights.max(), dtype=torch.float32)

    def update(self, index, errors):
        self.priorities[index] = errors + 1e-5


def env_step(state, action):
    """Keep a drifting point near zero."""
    state = state + np.array([0.3, -0.3, 0.0])[action] + 0.1 * rng.randn(2) * [1, 0]
    state = np.clip(state, -3, 3)
    return state.astype(np.float32), np.float32(-abs(state[0])), np.float32(rng.rand() < 0.05)


online = Dueling(2, 3)
target = copy.deepcopy(online).eval()
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
buffer, criterion = PrioritisedBuffer(BUFFER), nn.SmoothL1Loss(reduction="none")
state, rewards = rng.randn(2).astype(np.float32), []
for frame in range(600):
    epsilon = max(0.05, 1 - frame / 300)
    if rng.rand() < epsilon:
        action = rng.randint(3)
    else:
        with torch.no_grad():
            action = int(online(torch.as_tensor(state)[None]).argmax(1))
    following, reward, done = env_step(state, action)
    buffer.push((state, np.int64(action), reward, following, done))
    rewards.append(reward)
    state = rng.randn(2).astype(np.float32) * 1.5 if done else following
    if frame < START:
        continue
    (s, a, r, s2, d), index, weights = buffer.sample(BATCH, beta=min(1.0, 0.4 + frame / 1000))
    q = online(s).gather(1, a[:, None]).squeeze(1)
    with torch.no_grad():
        best = online(s2).argmax(1, keepdim=True)
        expected = r + 0.9 * (1 - d) * target(s2).gather(1, best).squeeze(1)
    elementwise = criterion(q, expected)
    loss = (elementwise * weights).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    buffer.update(index, (q - expected).detach().abs().numpy())
    if frame % TARGET_EVERY == 0:
        target.load_state_dict(online.state_dict())
print(f"mean reward of the first 200 frames {np.mean(rewards[:200]):.3f}, of the last 200 {np.mean(rewards[-200:]):.3f}")
