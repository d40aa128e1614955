# DQN on a minimal balancing task (no gym needed)
import math
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(1)
torch.manual_seed(1)

GAMMA = 0.97
BATCH_SIZE = 64
MEMORY = 5000
TOTAL_STEPS = 2500
TARGET_EVERY = 100
MAX_EPISODE = 100


class Pole:
    """An inverted pendulum that falls when the angle leaves [-0.4, 0.4]; +1 for every step."""

    def reset(self):
        self.th, self.om, self.t = random.uniform(-0.05, 0.05), random.uniform(-0.05, 0.05), 0
        return (self.th, self.om)

    def step(self, action):
        torque = 2.5 if action == 1 else -2.5
        acc = 4.0 * math.sin(self.th) + torque + random.gauss(0.0, 1.0)
        self.om += 0.1 * acc
        self.th += 0.1 * self.om
        self.t += 1
        fallen = abs(self.th) > 0.4
        return (self.th, self.om), 1.0, fallen, self.t >= MAX_EPISODE


class QNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.head = nn.Linear(hidden, 2)

    def forward(self, s):
        return self.head(self.body(s))


def greedy(q, s):
    with torch.no_grad():
        return q(torch.tensor(s)).argmax().item()


def learn(q, q_target, optimizer, memory):
    s, a, r, s2, done = zip(*random.sample(memory, BATCH_SIZE))
    s, s2 = torch.tensor(s), torch.tensor(s2)
    a, r, done = torch.tensor(a), torch.tensor(r), torch.tensor(done, dtype=torch.float32)
    q_sa = q(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        target = r + GAMMA * q_target(s2).max(dim=1).values * (1 - done)
    loss = F.smooth_l1_loss(q_sa, target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def evaluate(q, episodes=10):
    lengths = []
    for _ in range(episodes):
        env = Pole()
        s, over = env.reset(), False
        while not over:
            s, _, fallen, timeout = env.step(greedy(q, s))
            over = fallen or timeout
        lengths.append(env.t)
    return sum(lengths) / len(lengths)


q, q_target = QNet(), QNet()
q_target.load_state_dict(q.state_dict())
optimizer = torch.optim.Adam(q.parameters(), lr=2e-3)
memory = deque(maxlen=MEMORY)

env = Pole()
state, losses, finished = env.reset(), [], []
for step in range(1, TOTAL_STEPS + 1):
    epsilon = max(0.05, 1.0 - step / 1200)
    action = random.randrange(2) if random.random() < epsilon else greedy(q, state)
    nxt, reward, fallen, timeout = env.step(action)
    memory.append((state, action, reward, nxt, fallen))
    if fallen or timeout:
        finished.append(env.t)
        state = env.reset()
    else:
        state = nxt
    if len(memory) >= 200:
        losses.append(learn(q, q_target, optimizer, memory))
    if step % TARGET_EVERY == 0:
        q_target.load_state_dict(q.state_dict())
    if step % 500 == 0:
        print(f'step {step}: loss {sum(losses[-100:]) / 100:.4f}, '
              f'mean length of the last episodes {sum(finished[-10:]) / len(finished[-10:]):.1f}')

print(f'greedy policy, mean episode length over 10 episodes: {evaluate(q):.1f} of {MAX_EPISODE}')
