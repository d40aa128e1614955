"""Deep Q-learning in a corridor: a small prize on the left, a large one on the right."""

import random
from collections import deque

import torch
from torch import nn

LENGTH, GAMMA = 9, 0.9


def encode(s):
    v = torch.zeros(LENGTH)
    v[s] = 1.0
    return v


def env_step(s, action):
    nxt = s + (1 if action == 1 else -1)
    if nxt == 0:
        return nxt, 0.3, True
    if nxt == LENGTH - 1:
        return nxt, 1.0, True
    return nxt, -0.01, False


class Agent:
    """Online and target network with a replay buffer."""

    def __init__(self):
        self.q = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target = nn.Sequential(nn.Linear(LENGTH, 32), nn.ReLU(), nn.Linear(32, 2))
        self.target.load_state_dict(self.q.state_dict())
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=2e-3)
        self.memory = deque(maxlen=2000)

    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.q(encode(s)).argmax())

    def learn(self, batch_size=32):
        s, a, r, s2, d = zip(*random.sample(self.memory, batch_size), strict=True)
        s, s2 = torch.stack([encode(v) for v in s]), torch.stack([encode(v) for v in s2])
        a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float32)
        with torch.no_grad():
            best_next = self.target(s2).max(dim=1).values
            goal = r + GAMMA * (1 - d) * best_next
        chosen = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


random.seed(1)
torch.manual_seed(1)
agent, steps = Agent(), 0
for episode in range(1, 121):
    state, done, loss, count = random.randrange(1, LENGTH - 1), False, 0.0, 0
    while not done and count < 40:
        action = agent.act(state, max(0.1, 1 - episode / 80))
        nxt, reward, done = env_step(state, action)
        agent.memory.append((state, action, reward, nxt, done))
        state, steps, count = nxt, steps + 1, count + 1
        if len(agent.memory) >= 64:
            loss = agent.learn()
        if steps % 50 == 0:
            agent.target.load_state_dict(agent.q.state_dict())
    if episode % 30 == 0:
        print(f"episode {episode} td loss {loss:.5f}")

with torch.no_grad():
    values = agent.q(torch.eye(LENGTH))[1:-1]
print("policy", "".join("LR"[i] for i in values.argmax(1).tolist()))
print("value of the states", [round(v, 3) for v in values.max(1).values.tolist()])
