"""Gradient accumulation with a last window that may be shorter."""

import torch
from torch import nn
from torch.utils.data import DataLoader

WINDOW = 4


def fit(model: nn.Module, loader: DataLoader, epochs: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
    whole, rest = divmod(len(loader), WINDOW)
    model.train()
    for _ in range(epochs):
        optimizer.zero_grad(set_to_none=True)
        for index, (x, y) in enumerate(loader):
            last = index >= whole * WINDOW
            size = rest if last else WINDOW
            loss = nn.functional.cross_entropy(model(x), y)
            (loss / size).backward()  # broken[accumulation-not-normalised]: loss.backward()
            if (index + 1) % WINDOW == 0 or index + 1 == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                warmup.step()
                optimizer.zero_grad(set_to_none=True)
