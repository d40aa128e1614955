"""A run with a mirror that is never closed: `OUT URL [STEPS]`."""

import sys

import torch
from torch import nn

from truestep import Run

steps = int(sys.argv[3]) if len(sys.argv) > 3 else 2
run = Run(out=sys.argv[1], mirror=sys.argv[2], resume="auto", max_steps=steps, device="cpu", watch=False)
loader = run.loader(torch.utils.data.TensorDataset(torch.ones(8, 3)), batch_size=2)
model = run.model(nn.Linear(3, 1))
run.optimizer(torch.optim.SGD(model.parameters(), lr=0.01))
for _ in run.epochs():
    for (x,) in run.train(loader, model):
        run.step(model(x).sum())
        run.save()
