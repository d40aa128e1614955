"""Decorators that set the mode and the gradients around functions."""

import functools

import torch
from torch import nn


def in_mode(training):
    def decorate(function):
        @functools.wraps(function)
        def wrapped(self, *args, **kwargs):
            before = self.model.training
            self.model.train(training)
            try:
                return function(self, *args, **kwargs)
            finally:
                self.model.train(before)

        return wrapped

    return decorate


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @in_mode(True)
    def train_epoch(self):
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()

    @in_mode(False)
    @torch.no_grad()  # broken[no-grad-missing]:
    def validate(self):
        hits = 0
        for x, y in self.val_loader:
            hits += (self.model(x).argmax(1) == y).sum().item()
        return hits / len(self.val_loader.dataset)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()
            print(epoch, self.validate())
