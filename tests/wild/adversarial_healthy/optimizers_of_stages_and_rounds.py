"""Optimizers built again on purpose, states that are kept and returned, and a schedule that starts later than the run."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(256, 8), torch.randint(3, (256,))
x[torch.arange(256), y] += 2.0


def epoch(model, optimizer):
    model.train()
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


def staged(model):
    """Train in stages, each with a smaller learning rate and new moments, and return the best weights."""
    best, best_state = 0.0, None
    for lr in (0.03, 0.01, 0.003):
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        for _ in range(3):
            epoch(model, optimizer)
        model.eval()
        with torch.no_grad():
            accuracy = (model(x).argmax(1) == y).float().mean().item()
        if accuracy > best:
            best, best_state = accuracy, copy.deepcopy(model.state_dict())
    return best_state


def rounds(model):
    """Average the weights of clients that train one model in turn, each with a new optimizer."""
    for _ in range(4):
        center = [parameter.detach().clone() for parameter in model.parameters()]
        total = [torch.zeros_like(parameter) for parameter in center]
        for _ in range(3):
            for parameter, value in zip(model.parameters(), center, strict=True):
                parameter.data.copy_(value)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            epoch(model, optimizer)
            for value, parameter in zip(total, model.parameters(), strict=True):
                value.add_(parameter.detach() / 3)
        for parameter, value in zip(model.parameters(), total, strict=True):
            parameter.data.copy_(value)


def late(model):
    """Step the schedule only after a number of epochs that this run does not reach."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for number in range(4):
        epoch(model, optimizer)
        if number >= 10:
            schedule.step()


network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
before = copy.deepcopy(network.state_dict())
network.load_state_dict(staged(network))
rounds(network)
late(network)
print(max((before[name] - value).abs().max().item() for name, value in network.state_dict().items()) > 0)
