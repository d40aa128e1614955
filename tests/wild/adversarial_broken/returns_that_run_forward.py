"""An actor and a critic, an episode at a time; each return goes on from the one before it."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
rng = np.random.default_rng(1)
actor, critic = nn.Linear(3, 3), nn.Linear(3, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)


def episode():
    states, actions, rewards = [], [], []
    level = rng.uniform(-1, 1)
    for step in range(30):
        state = np.array([level, level**2, step / 30], dtype=np.float32)
        with torch.no_grad():
            action = torch.multinomial(actor(torch.from_numpy(state)).softmax(-1), 1).item()
        level += 0.2 * (action - 1) + rng.normal(0, 0.1)
        states.append(state)
        actions.append(action)
        rewards.append(-abs(level))
    return np.stack(states), actions, rewards


def discounted(rewards, gamma):
    returns = np.zeros(len(rewards), dtype=np.float32)
    total = 0.0
    for t in range(len(rewards)):
        total = rewards[t] + gamma * total
        returns[t] = total
    return returns  # error: returns-in-wrong-order


for _update in range(40):
    states, actions, rewards = episode()
    returns = torch.from_numpy(discounted(rewards, 0.9))
    values = critic(torch.from_numpy(states)).squeeze(1)
    log_prob = F.log_softmax(actor(torch.from_numpy(states)), dim=1)[torch.arange(30), torch.tensor(actions)]
    advantage = returns - values
    loss = -(log_prob * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("mean reward", np.mean(rewards))
