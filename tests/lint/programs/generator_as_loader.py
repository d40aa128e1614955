"""Endless batches from a generator; the number of steps ends the training."""

import itertools

import torch
from torch import nn


def endless(loader):
    while True:
        yield from loader


def to_device(batches, device):
    for x, y in batches:
        yield x.to(device, non_blocking=True), y.to(device, non_blocking=True)


def train(model, loader, device="cuda", steps=10_000):
    model = model.to(device)
    optimizer = torch.optim.RAdam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    losses = []
    for step, (x, y) in enumerate(itertools.islice(to_device(endless(loader), device), steps)):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y.float())
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.detach())  # broken[loss-kept-with-graph]: losses.append(loss)
        if step % 100 == 99:
            print(step, torch.stack(losses).mean().item())
            losses.clear()  # broken[loss-kept-with-graph]: pass
