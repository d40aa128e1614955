"""A run with a folder: `FOLDER [STEP RANK]`; with these, a rank gets SIGTERM in a step."""

from __future__ import annotations

import os
import signal
import sys

import torch
from torch import nn
from torch.utils.data import TensorDataset

from truestep import Run

torch.set_num_threads(1)
at, who = (int(value) for value in sys.argv[2:4] or (-1, 0))
generator = torch.Generator().manual_seed(5)
x_all = torch.randn(37, 6, generator=generator)
y_all = x_all.sum(1, keepdim=True)
run = Run(out=sys.argv[1], resume="auto", seed=3, max_epochs=3, device="cpu", watch=False, clip_norm=1.0)
train = run.loader(TensorDataset(x_all, y_all), batch_size=8 // run.world_size, shuffle=True)
model = run.model(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 1)))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
for epoch in run.epochs():
    error = run.mean("error")
    for x, y in run.train(train, model):
        if run.global_step == at and run.rank == who:
            os.kill(os.getpid(), signal.SIGTERM)
        losses = (model(x) - y).square()
        error.update(losses)
        run.step(losses.mean())
    run.log({"error": error})
    run.save()
print(f"{run.global_step} {sum(float(p.detach().double().sum()) for p in model.parameters()):.6f}")
