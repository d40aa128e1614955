"""A run with a folder: `FOLDER [STEP RANK] [STRATEGY]`; with a step, a rank gets SIGTERM in it.

A run with a strategy has no dropout, so that its weights do not depend on the number of ranks.
"""

from __future__ import annotations

import os
import signal
import sys

import torch
from torch import nn
from torch.utils.data import TensorDataset

from truestep import Run

torch.set_num_threads(1)
strategy = sys.argv.pop() if sys.argv[-1] in ("auto", "ddp", "fsdp") else ""
at, who = (int(value) for value in sys.argv[2:4] or (-1, 0))
generator = torch.Generator().manual_seed(5)
x_all = torch.randn(37, 6, generator=generator)
y_all = x_all.sum(1, keepdim=True)
settings = {"seed": 3, "max_epochs": 3, "device": "cpu", "watch": False, "clip_norm": 1.0}
run = Run(out=sys.argv[1], resume="auto", strategy=strategy or "auto", **settings)
train = run.loader(TensorDataset(x_all, y_all), batch_size=8 // run.world_size, shuffle=True)
model = run.model(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Dropout(0.0 if strategy else 0.2), nn.Linear(16, 1)))
optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
average = run.ema(model, 0.5)


def total(module: nn.Module) -> float:
    state = module.state_dict().values()
    return sum(float(getattr(p, "full_tensor", lambda p=p: p)().double().sum()) for p in state)


for epoch in run.epochs():
    error = run.mean("error")
    for x, y in run.train(train, model):
        if run.global_step == at and run.rank == who:
            os.kill(os.getpid(), signal.SIGTERM)
        losses = (model(x) - y).square()
        error.update(losses)
        run.step(losses.mean())
    run.log({"error": error})
    run.save(-float(epoch) if epoch < 2 else 0.0)
print(f"{run.global_step} {total(model):.6f} {total(average.model):.6f}")
