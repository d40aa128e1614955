"""DQN on a small point-to-goal task."""
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SEED = 5
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)


class LineWorld:
    """A point on [-1, 1] with velocity; push left, stay, push right to rest at a goal."""

    def __init__(self, rng):
        self.rng = rng
        self.state = np.zeros(3, dtype=np.float32)

    def reset(self):
        self.state[0] = self.rng.uniform(-1, 1)
        self.state[1] = 0.0
        self.state[2] = self.rng.uniform(-0.8, 0.8)
        self.t = 0
        return self.state.copy()

    def step(self, action):
        self.state[1] = 0.8 * self.state[1] + 0.06 * (action - 1)
        self.state[0] = np.clip(self.state[0] + self.state[1], -1, 1)
        self.t += 1
        reward = -abs(float(self.state[0] - self.state[2]))
        return self.state.copy(), reward, self.t >= 25


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque(maxlen=capacity)

    def push(self, state, action, reward, next_state):
        self.memory.append((state, action, reward, next_state))

    def sample(self, batch_size):
        batch = random.sample(self.memory, batch_size)
        s, a, r, s2 = zip(*batch)
        return (torch.from_numpy(np.stack(s)), torch.tensor(a).unsqueeze(1),
                torch.tensor(r, dtype=torch.float32), torch.from_numpy(np.stack(s2)))

    def __len__(self):
        return len(self.memory)


def make_q():
    return nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))


def act(q, state, eps):
    if random.random() < eps:
        return random.randrange(3)
    with torch.no_grad():
        return int(q(torch.from_numpy(state)).argmax())


def evaluate(q, episodes=20):
    env = LineWorld(np.random.default_rng(999))
    returns = []
    for _ in range(episodes):
        state, done, total = env.reset(), False, 0.0
        while not done:
            state, reward, done = env.step(act(q, state, eps=0.0))
            total += reward
        returns.append(total)
    return float(np.mean(returns))


env = LineWorld(np.random.default_rng(SEED))
q_net, target_net = make_q(), make_q()
target_net.load_state_dict(q_net.state_dict())
optimizer = torch.optim.Adam(q_net.parameters(), lr=1e-3)
memory = ReplayMemory(5000)
GAMMA, BATCH, EPISODES = 0.95, 64, 120
steps = 0

print(f"untrained return {evaluate(q_net):.3f}")
for episode in range(1, EPISODES + 1):
    eps = max(0.05, 1.0 - episode / 60)
    state = env.reset()
    done = False
    while not done:
        action = act(q_net, state, eps)
        next_state, reward, done = env.step(action)
        # the task is endless and only cut off at 25 steps: always bootstrap
        memory.push(state, action, reward, next_state)
        state = next_state
        steps += 1
        if len(memory) < 200 or steps % 2:
            continue
        s, a, r, s2 = memory.sample(BATCH)
        with torch.no_grad():
            target = r + GAMMA * target_net(s2).max(dim=1).values
        loss = F.smooth_l1_loss(q_net(s).gather(1, a).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if steps % 100 == 0:
            target_net.load_state_dict(q_net.state_dict())
    if episode % 20 == 0:
        print(f"episode {episode:3d}  td loss {loss.item():.4f}  greedy return {evaluate(q_net):.3f}")
