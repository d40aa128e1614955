"""Callbacks around the steps; the base class calls nothing itself."""

import torch
from torch import nn


class Callback:
    def before_step(self, loop): ...

    def after_step(self, loop): ...

    def after_epoch(self, loop): ...


class Clip(Callback):
    def __init__(self, value):
        self.value = value

    def before_step(self, loop):
        nn.utils.clip_grad_norm_(loop.model.parameters(), self.value)


class Schedule(Callback):
    def __init__(self, scheduler):
        self.scheduler = scheduler

    def after_epoch(self, loop):
        self.scheduler.step()


class Loop:
    def __init__(self, model, optimizer, callbacks=()):
        self.model, self.optimizer, self.callbacks = model, optimizer, list(callbacks)

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, loader, epochs):
        self.model.train()
        for self.epoch in range(epochs):
            for self.x, self.y in loader:
                self.loss = nn.functional.cross_entropy(self.model(self.x), self.y)
                self.optimizer.zero_grad()
                self.loss.backward()
                self.call("before_step")
                self.optimizer.step()
                self.call("after_step")
            self.call("after_epoch")


def main(loader):
    model = nn.Linear(10, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # broken[optimizer-holds-stale-parameters]: optimizer = torch.optim.SGD(model.parameters(), lr=0.1); model = nn.Linear(10, 3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    Loop(model, optimizer, [Clip(1.0), Schedule(schedule)]).fit(loader, 10)
