"""A run of steps without end: `RANK_TIMEOUT STRATEGY`; each rank writes the file `reached-RANK` in its tenth step."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from torch import nn

from truestep import Run

torch.set_num_threads(1)
settings = {"device": "cpu", "watch": False, "progress": False, "strategy": sys.argv[2]}
with Run(out="run", max_steps=100_000, rank_timeout=float(sys.argv[1]), **settings) as run:
    model = run.model(nn.Linear(4, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step in run.steps():
        if step == 10:
            Path(f"reached-{run.rank}").touch()
        time.sleep(0.01)
        loss = model(torch.ones(2, 4)).square().mean()  # line 23: parts are gathered here
        run.step(loss)  # line 24: gradients are averaged here
