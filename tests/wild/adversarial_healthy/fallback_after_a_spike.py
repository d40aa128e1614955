"""States kept by a training loss that are meant: to return to after a spike, and of an equation on points drawn in each step.

At the end, a classifier that is attacked on purpose is right less often than guesses.
"""

import copy

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
inputs = torch.rand(400, 8)
labels = ((inputs - 0.5) @ torch.randn(8, 3)).argmax(1)
x_val, y_val = inputs[300:], labels[300:]


def train(net, epochs=30):
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    lowest, good = float("inf"), copy.deepcopy(net.state_dict())
    for epoch in range(epochs):
        train_loss = 0.0
        for rows in torch.randperm(300).split(30):
            loss = F.cross_entropy(net(inputs[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / 10
        with torch.no_grad():
            val_loss = F.cross_entropy(net(x_val), y_val).item()
        if train_loss < lowest:
            lowest, good = train_loss, copy.deepcopy(net.state_dict())
        elif train_loss > 3 * lowest:
            net.load_state_dict(good)
        if epoch % 10 == 9:
            print(f"epoch {epoch}: {train_loss:.3f}, validation {val_loss:.3f}")


def solve(net, steps=80):
    """Solve u' = -2 u, u(0) = 1: the residual is the criterion, and the true solution only shows the error."""
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    best_loss, best = float("inf"), None
    t_val = torch.linspace(0, 1, 50)[:, None]
    for _ in range(steps):
        t = torch.rand(64, 1, requires_grad=True)
        u = net(t)
        (slope,) = torch.autograd.grad(u.sum(), t, create_graph=True)
        loss = (slope + 2 * u).pow(2).mean() + (net(torch.zeros(1, 1)) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss = loss.item()
        with torch.no_grad():
            val_loss = F.mse_loss(net(t_val), torch.exp(-2 * t_val)).item()
        if train_loss < best_loss:
            best_loss, best = train_loss, copy.deepcopy(net.state_dict())
    net.load_state_dict(best)
    print(f"residual {best_loss:.3f}, error of the last state {val_loss:.3f}")


def attack(net, size=8.0):
    right = 0
    for x, y in zip(x_val.split(50), y_val.split(50), strict=True):
        x = x.clone().requires_grad_()
        (direction,) = torch.autograd.grad(F.cross_entropy(net(x), y), x)
        with torch.no_grad():
            right += (net(x + size * direction.sign()).argmax(1) == y).sum().item()
    print(f"right under attack: {right} of {len(x_val)}")


classifier = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
train(classifier)
attack(classifier)
solve(nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1)))
