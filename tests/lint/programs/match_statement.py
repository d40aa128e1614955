"""Optimizers, schedules and phases by `match`."""

import torch
from torch import nn


def make_optimizer(name: str, model: nn.Module, lr: float) -> torch.optim.Optimizer:
    match name.lower():
        case "sgd":
            return torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        case "adam" | "adamw":
            return torch.optim.AdamW(model.parameters(), lr=lr)
        case other:
            raise ValueError(other)


def run(phase: str, model, loader, optimizer=None):
    match phase:
        case "train":
            model.train()
        case _:
            model.eval()
    seen = hits = 0
    for x, y in loader:
        with torch.set_grad_enabled(phase == "train"):
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
        match phase:
            case "train":
                optimizer.zero_grad()  # broken[missing-zero-grad]: pass
                loss.backward()
                optimizer.step()
        hits += (logits.argmax(1) == y).sum().item()
        seen += len(y)
    return hits / seen


def main(loaders, kind="sgd"):
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Dropout(), nn.Linear(100, 10))
    optimizer = make_optimizer(kind, model, 0.1)
    for _ in range(5):
        for phase in ("train", "val"):
            print(phase, run(phase, model, loaders[phase], optimizer))
