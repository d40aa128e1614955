"""A walk on a grid with pits: an agent of a class, a replay of arrays, a soft target, greedy episodes for the score."""

import numpy as np
import torch
from torch import nn

MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))


class Grid:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.pits = {(1, 1), (2, 3), (3, 1)}

    def reset(self):
        self.at, self.left = (0, int(self.rng.integers(0, 5))), 30
        return self.look()

    def look(self):
        seen = np.zeros(10, dtype=np.float32)
        seen[self.at[0]] = seen[5 + self.at[1]] = 1.0
        return seen

    def step(self, action):
        row, column = self.at[0] + MOVES[action][0], self.at[1] + MOVES[action][1]
        self.at = (min(max(row, 0), 4), min(max(column, 0), 4))
        self.left -= 1
        if self.at in self.pits:
            return self.look(), -1.0, True, False
        if self.at == (4, 4):
            return self.look(), 1.0, True, False
        return self.look(), -0.02, False, self.left == 0


class Replay:
    def __init__(self, size):
        self.states, self.after = np.zeros((size, 10), np.float32), np.zeros((size, 10), np.float32)
        self.actions, self.rewards = np.zeros(size, np.int64), np.zeros(size, np.float32)
        self.over, self.size, self.count = np.zeros(size, np.float32), size, 0

    def add(self, state, action, reward, after, over):
        i = self.count % self.size
        self.states[i], self.actions[i], self.rewards[i], self.after[i], self.over[i] = state, action, reward, after, over
        self.count += 1

    def sample(self, n, rng):
        i = rng.integers(0, min(self.count, self.size), n)
        parts = self.states[i], self.actions[i], self.rewards[i], self.after[i], self.over[i]
        return [torch.from_numpy(part) for part in parts]


def network():
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


class Agent:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.online, self.target = network(), network()
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        self.replay, self.epsilon = Replay(2000), 1.0

    def act(self, state, greedy=False):
        if not greedy and self.rng.random() < self.epsilon:
            return int(self.rng.integers(0, 4))
        with torch.no_grad():
            return int(self.online(torch.from_numpy(state).unsqueeze(0)).argmax(dim=1))

    def learn(self):
        states, actions, rewards, after, over = self.replay.sample(64, self.rng)
        values = self.online(states).gather(1, actions.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.online(after).argmax(dim=1, keepdim=True)
            wanted = rewards + 0.95 * (1 - over) * self.target(after).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(values, wanted)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), 10.0)
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.online.parameters()):
                slow.lerp_(fast, 0.02)


def score(agent, seed, episodes=10):
    world, total = Grid(seed), 0.0
    for _ in range(episodes):
        state, done = world.reset(), False
        while not done:
            state, reward, over, cut = world.step(agent.act(state, greedy=True))
            total += reward
            done = over or cut
    return total / episodes


def main():
    torch.manual_seed(0)
    agent, world = Agent(0), Grid(1)
    for episode in range(160):
        state, done = world.reset(), False
        while not done:
            action = agent.act(state)
            after, reward, over, cut = world.step(action)
            agent.replay.add(state, action, reward, after, float(over))
            state, done = after, over or cut
            if agent.replay.count >= 200:
                agent.learn()
        agent.epsilon = max(0.05, agent.epsilon * 0.97)
        if episode % 40 == 39:
            print(f"episode {episode} score {score(agent, 7):.3f}")


main()
