"""DQN as a flat script: replay in a deque, epsilon-greedy, hard target update by load_state_dict every 25 updates."""
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(0)
size, goal, pits = 4, (3, 3), {(1, 1), (2, 3)}
moves = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def encode(pos):
    x = torch.zeros(size * size)
    x[pos[0] * size + pos[1]] = 1
    return x


q_net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
target_net = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 4))
target_net.load_state_dict(q_net.state_dict())
target_net.eval()
optimizer = torch.optim.Adam(q_net.parameters(), lr=3e-3)
replay = deque(maxlen=1000)
updates, epsilon, returns = 0, 1.0, []

for episode in range(40):
    pos, total = (0, 0), 0.0
    for t in range(25):
        if random.random() < epsilon:
            action = random.randrange(4)
        else:
            with torch.no_grad():
                action = q_net(encode(pos)[None]).argmax(1).item()
        nxt = (min(max(pos[0] + moves[action][0], 0), size - 1), min(max(pos[1] + moves[action][1], 0), size - 1))
        reward = 1.0 if nxt == goal else -1.0 if nxt in pits else -0.04
        done = nxt == goal or nxt in pits
        replay.append((encode(pos), action, reward, encode(nxt), done))
        pos, total = nxt, total + reward

        if len(replay) >= 64:
            batch = random.sample(replay, 32)
            s, a, r, s2, d = zip(*batch)
            s, s2 = torch.stack(s), torch.stack(s2)
            a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float32)
            q = q_net(s).gather(1, a[:, None]).squeeze(1)
            with torch.no_grad():
                y = r + 0.95 * (1 - d) * target_net(s2).max(1).values
            loss = F.smooth_l1_loss(q, y)
            optimizer.zero_grad()
            loss.backward()
            for p in q_net.parameters():
                p.grad.clamp_(-1, 1)
            optimizer.step()
            updates += 1
            if updates % 25 == 0:
                target_net.load_state_dict(q_net.state_dict())
        if done:
            break
    epsilon = max(0.1, epsilon * 0.93)
    returns.append(total)
print(f"{updates} updates, mean return of the first 10 {sum(returns[:10]) / 10:.2f}, of the last 10 {sum(returns[-10:]) / 10:.2f}")
