"""A run that is resumed in a second process of a queue, as functions: the checkpoint has no position of the warm-up."""

import tempfile
from pathlib import Path

import torch
from torch import nn

torch.manual_seed(2)
x = torch.randn(480, 8)
y = (x[:, :2].prod(1) + x[:, 2] > 0).long()


def build(steps=120, warmup=30):
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warmup, (steps - step) / (steps - warmup))
    )
    return model, optimizer, schedule


def epochs(numbers, model, optimizer, schedule, file):
    for epoch in numbers:
        model.train()
        for rows in torch.randperm(400).split(40):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = (model(x[400:]).argmax(1) == y[400:]).float().mean()
        print(f"epoch {epoch}: {right:.3f} with {optimizer.param_groups[0]['lr']:.2e}")
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1}, file)


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "last.pt"
    epochs(range(7), *build(), file)
    model, optimizer, schedule = build()
    state = torch.load(file)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])  # error: state-not-loaded
    first = state["epoch"]
    epochs(range(first, 12), model, optimizer, schedule, file)
