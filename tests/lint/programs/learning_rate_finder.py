"""The search for a learning rate: the rate grows in each step, and the weights are restored behind it."""

import copy
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, OneCycleLR


def find_lr(model, loader, criterion, low=1e-7, high=10.0, steps=100):
    before = copy.deepcopy(model.state_dict())  # broken[best-weights-aliased]: before = model.state_dict()
    optimizer = torch.optim.SGD(model.parameters(), lr=low)
    schedule = ExponentialLR(optimizer, gamma=(high / low) ** (1 / steps))
    model.train()
    best, smooth, found = math.inf, 0.0, low
    batches = iter(loader)
    for step in range(steps):
        try:
            x, y = next(batches)
        except StopIteration:
            batches = iter(loader)
            x, y = next(batches)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        smooth = 0.98 * smooth + 0.02 * loss.item()
        average = smooth / (1 - 0.98 ** (step + 1))
        if average > 4 * best:
            break
        if average < best:
            best, found = average, schedule.get_last_lr()[0]
        schedule.step()
    model.load_state_dict(before)
    return found / 10


def train(model, loader, epochs=5):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    rate = find_lr(model, loader, criterion)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    schedule = OneCycleLR(optimizer, max_lr=rate, total_steps=epochs * len(loader))
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            schedule.step()
