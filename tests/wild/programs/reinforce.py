"""Healthy: REINFORCE in the examples' style: log-probabilities with graphs collected over an episode, one backward, lists cleared."""
import argparse
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

parser = argparse.ArgumentParser(description="REINFORCE example")
parser.add_argument("--gamma", type=float, default=0.9, metavar="G")
parser.add_argument("--seed", type=int, default=543, metavar="N")
parser.add_argument("--episodes", type=int, default=150)
args = parser.parse_args()

torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Corridor:
    """Walk on a line of nine cells; the goal is drawn on one side and shown in the observation."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def _obs(self):
        return np.array([self.pos / 4.0, self.goal / 4.0, 1.0], dtype=np.float32)

    def reset(self):
        self.pos, self.t = 0, 0
        self.goal = 4 if self.rng.rand() < 0.5 else -4
        return self._obs()

    def step(self, action):
        self.t += 1
        self.pos = max(-4, min(4, self.pos + (1 if action == 1 else -1)))
        done = self.pos == self.goal
        return self._obs(), (1.0 if done else -0.1), done, self.t >= 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 32)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


env = Corridor(args.seed)
policy = Policy()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    state = torch.from_numpy(state).float().unsqueeze(0)
    m = Categorical(policy(state))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R = 0
    policy_loss = []
    returns = deque()
    for r in policy.rewards[::-1]:
        R = r + args.gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


history = []
for i_episode in range(args.episodes):
    state, ep_reward = env.reset(), 0
    while True:
        action = select_action(state)
        state, reward, done, truncated = env.step(action)
        policy.rewards.append(reward)
        ep_reward += reward
        if done or truncated:
            break
    history.append(ep_reward)
    finish_episode()
print("mean reward, first 30 episodes %.3f, last 30 %.3f" % (np.mean(history[:30]), np.mean(history[-30:])))
