"""A run in which a rank does not come to a step: `killed|stopped|late|raises STRATEGY [RANK]`; rank 1 by default."""

from __future__ import annotations

import os
import signal
import sys
import time

import torch
from torch import nn

from truestep import Run

torch.set_num_threads(1)
how, strategy = sys.argv[1:3]
rank = int((sys.argv[3:] or ["1"])[0])
settings = {"device": "cpu", "watch": False, "progress": False, "strategy": strategy}
with Run(max_steps=20, rank_timeout=4 if how in ("late", "stopped") else 60, **settings) as run:
    model = run.model(nn.Linear(4, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    for step in run.steps():
        if run.rank == rank and step == 5:
            if how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "stopped":
                os.kill(os.getpid(), signal.SIGSTOP)
            if how == "late":
                time.sleep(9)
            if how == "raises":
                raise ValueError("a bad sample")
        run.step(model(torch.ones(2, 4)).square().mean())  # where the others wait
