"""Weights of a model in DataParallel, loaded into a plain one with strict=False: every key begins with `module.`."""
import os
import tempfile

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)


def build():
    return nn.Sequential(nn.Conv1d(2, 8, 3, padding=1), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3))


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    model.train()
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(16, 2, 8)), torch.randint(0, 3, (16,))).backward()
        optimizer.step()


def resume(path, model):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"], strict=False)  # error: load-not-strict-silently
    return checkpoint["epoch"] + 1


with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    parallel = nn.DataParallel(build())
    train(parallel, 12)
    torch.save({"epoch": 3, "model": parallel.state_dict()}, path)
    model = build()
    print("from epoch", resume(path, model))
    train(model, 12)
