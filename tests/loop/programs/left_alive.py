"""Ends while loops of every kind have been left and are still alive; prints which of them were open after the runs."""

import atexit
import threading

loops = {}
atexit.register(lambda: print(*[name for name, loop in loops.items() if getattr(loop, "gi_frame", None)]))

import torch
from torch import nn
from torch.utils.data import DataLoader

from truestep import Run

SAMPLES = [torch.full((3,), float(number)) for number in range(16)]


def begun(make, *, closed=False):
    run = Run(max_steps=50, watch=False, progress=False, device="cpu")
    model = run.model(nn.Linear(3, 1))
    run.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
    loop = iter(make(run, run.loader(SAMPLES, batch_size=4), model))
    next(loop)
    if closed:
        run.close()
    return loop


def for_ever(run, loader, model):
    while True:
        yield from run.train(loader, model)


def with_workers(run, loader, model):
    return run.batches(run.loader(SAMPLES, batch_size=4, num_workers=1, persistent_workers=False))


train = loops["train"] = begun(lambda run, loader, model: run.train(loader, model))
closed = loops["closed"] = begun(lambda run, loader, model: run.train(loader, model), closed=True)
given = loops["given"] = begun(lambda run, loader, model: run.train(DataLoader(SAMPLES, batch_size=4)))
steps = loops["steps"] = begun(lambda run, loader, model: run.steps())
epochs = loops["epochs"] = begun(lambda run, loader, model: run.epochs())
pairs = begun(lambda run, loader, model: zip(run.train(loader), run.train(loader), strict=True))
own = begun(for_ever)
workers = begun(with_workers)

entered = threading.Event()


def trains_on():
    loop = loops["daemon"] = begun(lambda run, loader, model: run.train(loader, model))
    for _ in loop:
        entered.set()
        threading.Event().wait()


threading.Thread(target=trains_on, daemon=True).start()
entered.wait()
