"""Rows of tables: mixtures, shuffled negatives, a split by indices, a buffer that is filled, a batch to overfit, a curriculum."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
rng = np.random.default_rng(0)
x, y = torch.randn(400, 6), torch.randint(0, 3, (400,))


def network(inputs, outputs):
    model = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, outputs))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def mixtures_with_a_split_by_indices():
    model, optimizer = network(6, 3)
    train, valid = torch.randperm(400).split([320, 80])
    for epoch in range(3):
        for index in train[torch.randperm(320)].split(32):
            other = index[torch.randperm(len(index))]
            out = model(0.7 * x[index] + 0.3 * x[other])
            update(optimizer, 0.7 * F.cross_entropy(out, y[index]) + 0.3 * F.cross_entropy(out, y[other]))
        with torch.no_grad():
            print("split", epoch, F.cross_entropy(model(x[valid]), y[valid]).item())
            print("training accuracy", (model(x[:64]).argmax(1) == y[:64]).float().mean().item())


def dependence_by_shuffled_negatives():
    pairs = torch.cat([x[:, :3] + 0.1 * torch.randn(400, 3), torch.randn(400, 1)], dim=1)
    model, optimizer = network(10, 1)
    for _ in range(12):
        index, shuffled = torch.randint(0, 400, (2, 64))
        joint = model(torch.cat([x[index], pairs[index]], dim=1)).mean()
        apart = model(torch.cat([x[index], pairs[shuffled]], dim=1)).logsumexp(0).sum()
        update(optimizer, apart - joint)


class Replay:
    def __init__(self, size):
        self.states, self.rewards, self.count = torch.randn(size, 4), torch.zeros(size), 0

    def add(self, states, rewards):
        end = self.count + len(states)
        self.states[self.count : end], self.rewards[self.count : end], self.count = states, rewards, end


def replay_that_is_filled():
    replay, (model, optimizer) = Replay(2000), network(4, 1)
    for _ in range(24):
        replay.add(torch.randn(20, 4), torch.randn(20))
        index = torch.randint(0, replay.count, (32,))
        update(optimizer, F.mse_loss(model(replay.states[index]).squeeze(1), replay.rewards[index]))


def overfits_one_batch():
    model, optimizer = network(6, 3)
    inputs, labels = x[:32], y[:32]
    for _ in range(30):
        update(optimizer, F.cross_entropy(model(inputs), labels))


def curriculum_from_short_to_long():
    model, optimizer = network(6, 3)
    for step in range(60):
        index = torch.randint(0, 100 + 5 * step, (32,))
        update(optimizer, F.cross_entropy(model(x[index]), y[index]))


def windows_in_order_with_a_later_test():
    series = np.sin(np.arange(600) / 7).astype(np.float32) + 0.1 * rng.normal(size=600).astype(np.float32)
    rows = np.lib.stride_tricks.sliding_window_view(series, 9)
    past, following = torch.tensor(rows[:, :8].copy()), torch.tensor(rows[:, 8:].copy())
    model, optimizer = network(8, 1)
    for start in range(0, 400, 20):
        update(optimizer, F.mse_loss(model(past[start : start + 20]), following[start : start + 20]))
    with torch.no_grad():
        print("later", F.mse_loss(model(past[420:]), following[420:]).item())


mixtures_with_a_split_by_indices()
dependence_by_shuffled_negatives()
replay_that_is_filled()
overfits_one_batch()
curriculum_from_short_to_long()
windows_in_order_with_a_later_test()
