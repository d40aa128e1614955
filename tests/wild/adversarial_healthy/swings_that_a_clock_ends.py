"""A pendulum without an end: its episodes are cut after forty moves, and the flag of the cut is kept and not used."""

import random
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 5))
slow = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 5))
slow.load_state_dict(actor.state_dict())
optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
memory, totals = deque(maxlen=3000), []
for episode in range(16):
    angle, speed, total = np.random.uniform(-np.pi, np.pi), np.random.uniform(-1, 1), 0.0
    for move in range(40):
        state = np.array([np.cos(angle), np.sin(angle), speed], dtype=np.float32)
        with torch.no_grad():
            best = int(actor(torch.from_numpy(state)).argmax())
        action = best if random.random() > 0.3 else random.randrange(5)
        speed = np.clip(speed + 0.75 * np.sin(angle) + 0.15 * (action - 2), -8, 8)
        angle = (angle + 0.05 * speed + np.pi) % (2 * np.pi) - np.pi
        reward = -(angle**2 + 0.1 * speed**2)
        after = np.array([np.cos(angle), np.sin(angle), speed], dtype=np.float32)
        memory.append((state, action, reward, after, move == 39))
        total += reward
        if len(memory) < 64:
            continue
        states, actions, rewards, afters, dones = map(np.array, zip(*random.sample(memory, 64)))
        values = actor(torch.from_numpy(states)).gather(1, torch.from_numpy(actions)[:, None]).squeeze(1)
        rewards = torch.as_tensor(rewards, dtype=torch.float32)
        with torch.no_grad():
            wanted = rewards + 0.98 * slow(torch.from_numpy(afters)).max(1).values
        loss = F.smooth_l1_loss(values, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(slow.parameters(), actor.parameters()):
                old.lerp_(new, 0.02)
    totals.append(total)
print(f"mean return {np.mean(totals[-5:]):.1f}")
