"""Behaviour cloning: the simulator hands out its own observation array, and the demonstrations keep views of it."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Simulator:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.observation = np.zeros(10, dtype=np.float32)

    def step(self):
        self.observation[:] = self.rng.normal(size=10)
        return self.observation, int(self.observation[:3].sum() > 0)


class Demonstrations(Dataset):
    def __init__(self, simulator, steps):
        self.pairs = []
        for _ in range(steps):
            observation, action = simulator.step()
            self.pairs.append((torch.as_tensor(observation), action))

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


def main():
    torch.manual_seed(3)
    loader = DataLoader(Demonstrations(Simulator(3), 480), batch_size=32, shuffle=True)  # error: samples-all-equal
    policy = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 2))
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    for epoch in range(4):
        for obs, act in loader:
            loss = nn.functional.cross_entropy(policy(obs), act)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item())


main()
