"""Modes by a decorator, gradients that are added by hand, optimizers in a dict, and an average that a hook updates."""

import copy
import functools

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)


def evaluating(function):
    @functools.wraps(function)
    def wrapped(self, *args):
        self.set_mode(False)
        with torch.no_grad():
            result = function(self, *args)
        self.set_mode(True)
        return result

    return wrapped


class Average:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.model = copy.deepcopy(model).requires_grad_(False)

    def update(self, model):
        for mine, other in zip(self.model.parameters(), model.parameters()):
            mine.lerp_(other.detach(), 1 - self.decay)


class Trainer:
    def __init__(self):
        self.nets = {"body": nn.Sequential(nn.Linear(4, 16), nn.Dropout(0.1), nn.Tanh()), "head": nn.Linear(16, 1)}
        self.optimizers = {name: torch.optim.SGD(net.parameters(), lr=0.05) for name, net in self.nets.items()}
        self.average = Average(self.nets["head"])
        self.optimizers["head"].register_step_post_hook(lambda *_: self.average.update(self.nets["head"]))

    def set_mode(self, training):
        for net in self.nets.values():
            net.train(training)

    def predict(self, x):
        return self.nets["head"](self.nets["body"](x)).squeeze(1)

    def step(self, x, y):
        weights = [p for net in self.nets.values() for p in net.parameters()]
        for p in weights:
            p.grad = None
        for half in range(2):  # two halves of a batch, with gradients that are added by hand
            loss = F.mse_loss(self.predict(x[half::2]), y[half::2]) / 2
            for p, g in zip(weights, torch.autograd.grad(loss, weights)):
                p.grad = g if p.grad is None else p.grad + g
        for optimizer in self.optimizers.values():
            optimizer.step()

    @evaluating
    def error(self, x, y):
        total = 0.0
        for part in range(0, len(x), 25):
            total += (self.predict(x[part : part + 25]) - y[part : part + 25]).pow(2).sum().item()
        return total / len(x)


x = torch.randn(200, 4)
y = x[:, 0] - 2 * x[:, 1] + 0.1 * torch.randn(200)
trainer = Trainer()
for epoch in range(8):
    for rows in torch.randperm(150).split(30):
        trainer.step(x[rows], y[rows])
    with torch.no_grad():
        averaged = trainer.average.model(trainer.nets["body"](x[150:])).std().item()
    print(f"epoch {epoch} error {trainer.error(x[150:], y[150:]):.4f} spread of the average {averaged:.3f}")
