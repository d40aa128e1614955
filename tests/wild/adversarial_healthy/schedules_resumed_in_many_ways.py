"""Resumed runs without a schedule in the checkpoint that are right: begun at a step, in another file, by hand."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR

torch.manual_seed(2)
x = torch.randn(440, 8)
y = (x[:, :2].sum(1) > 0).long()
STEPS, WARMUP, DONE = 80, 20, 40


def factor(step):
    return min((step + 1) / WARMUP, max(0.0, (STEPS - step) / (STEPS - WARMUP)))


def build():
    model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=6e-3)


def train(model, optimizer, schedule, steps):
    for _ in range(steps):
        rows = torch.randperm(400)[:40]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if schedule is not None:
            schedule.step()
    model.eval()
    with torch.no_grad():
        print(f"{(model(x[400:]).argmax(1) == y[400:]).float().mean():.3f} {optimizer.param_groups[0]['lr']:.2e}")
    model.train()


def resumed(file):
    model, optimizer = build()
    state = torch.load(file)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return model, optimizer


with tempfile.TemporaryDirectory() as folder:
    file, other = Path(folder) / "last.pt", Path(folder) / "schedule.pt"
    model, optimizer = build()
    schedule = LambdaLR(optimizer, factor)
    train(model, optimizer, schedule, DONE)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    torch.save(schedule.state_dict(), other)

    # begun at the step of the checkpoint
    model, optimizer = resumed(file)
    train(model, optimizer, LambdaLR(optimizer, factor, last_epoch=DONE), STEPS - DONE)

    # in another file
    model, optimizer = resumed(file)
    schedule = LambdaLR(optimizer, factor)
    schedule.load_state_dict(torch.load(other))
    train(model, optimizer, schedule, STEPS - DONE)

    # the function counts from the checkpoint
    model, optimizer = build()
    schedule = LambdaLR(optimizer, lambda step: factor(step + DONE))
    state = torch.load(file)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    train(model, optimizer, schedule, STEPS - DONE)

    # the position is set by hand
    model, optimizer = build()
    schedule = LambdaLR(optimizer, factor)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    schedule.last_epoch = DONE
    train(model, optimizer, schedule, STEPS - DONE)

    # another stage, with its own rate and schedule
    model, optimizer = resumed(file)
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 1e-3
    train(model, optimizer, CosineAnnealingLR(optimizer, STEPS), STEPS)

    # a cycle that is built for the rest, after the load
    model, optimizer = resumed(file)
    train(model, optimizer, OneCycleLR(optimizer, 3e-3, total_steps=STEPS), STEPS)
