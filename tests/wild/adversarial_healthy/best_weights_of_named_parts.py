"""Best weights are chosen by rows of a validation in three styles: parts in a dict, an attribute, targets left unread."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
data = torch.randn(600, 6)
wanted = (data[:, :1] - data[:, 1:2]).sign() * 0.5 + 0.1 * torch.randn(600, 1)
x_train, x_val, x_test = data[:400], data[400:500], data[500:]
y_train, y_val, y_test = wanted[:400], wanted[400:500], wanted[500:]


def make():
    net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
    return net, torch.optim.Adam(net.parameters(), lr=1e-2)


def epoch(net, optimizer, x, y):
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        F.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()


def choose(net, optimizer, measure):
    best_score, state = -float("inf"), None
    for _ in range(5):
        epoch(net, optimizer, x_train, y_train)
        score = measure(net)
        if score > best_score:
            best_score, state = score, copy.deepcopy(net.state_dict())
    net.load_state_dict(state)


class Parts:
    def __init__(self):
        self.valid = x_val, y_val
        self.test = x_test, y_test
        self.dev = self.valid

    def measure(self, net):
        with torch.no_grad():
            x, y = self.valid
            return -F.mse_loss(net(x), y).item()


parts = {"train": (x_train, y_train), "val": (x_val, y_val), "test": (x_test, y_test)}


def measure_named(net, name="val"):
    with torch.no_grad():
        x, y = parts[name]
        return -F.mse_loss(net(x), y).item()


def smooth(net):  # a score without targets: `y_val` is not needed
    with torch.no_grad():
        return -(net(x_val) - net(x_val + 0.01)).abs().mean().item()


for measure in (Parts().measure, measure_named, smooth):
    net, optimizer = make()
    choose(net, optimizer, measure)
    with torch.no_grad():
        print(f"test {F.mse_loss(net(x_test), y_test).item():.4f}")
