"""A training that uses everything that has a state; the tests kill it and resume it.

    python training.py OUT [--workers 2] [--accumulate 3] [--precision fp16] [--iterable | --tape] [--pause 0.01]

Writes the final weights to OUT/final.pt; OUT/metrics.jsonl holds every loss.
"""

import argparse
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

from truestep import Run, schedules


class Noisy(torch.utils.data.Dataset):
    """Samples that draw from all three generators whenever they are read."""

    def __init__(self, size=60):
        generator = torch.Generator().manual_seed(11)
        self.x = torch.randn(size, 6, generator=generator)
        self.y = torch.randint(0, 3, (size,), generator=generator)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        noise = torch.randn(6) * 0.1 + random.random() * 0.1 + float(np.random.rand()) * 0.1
        return self.x[index] + noise, self.y[index]


class Stream(torch.utils.data.IterableDataset):
    """The same samples, one after another."""

    def __init__(self):
        self.samples = Noisy()

    def __iter__(self):
        for index in range(len(self.samples)):
            yield self.samples[index]


class Tape(Stream):
    """The stream, which knows where it is."""

    def __init__(self):
        super().__init__()
        self.at = 0

    def __iter__(self):
        while self.at < len(self.samples):
            self.at += 1
            yield self.samples[self.at - 1]
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


def net():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.3), nn.Linear(16, 3))


def options(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--iterable", action="store_true")
    parser.add_argument("--tape", action="store_true")
    parser.add_argument("--evaluate-every", type=int, default=0)
    parser.add_argument("--asynchronous", action="store_true")
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--stop-at", type=int, default=0)
    return parser.parse_args(arguments)


class Stopped(Exception):
    """The run was cut off by a test."""


def main(arguments):
    chosen = options(arguments)
    torch.set_num_threads(1)
    run = Run(
        out=chosen.out,
        seed=3,
        max_epochs=chosen.epochs,
        precision=chosen.precision,
        accumulate=chosen.accumulate,
        clip_norm=0.5,
        device="cpu",
        resume="auto",
        save_every_n_steps=chosen.save_every,
        asynchronous=chosen.asynchronous,
        log_every_n_steps=5,
    )
    streams = chosen.iterable or chosen.tape
    data = Tape() if chosen.tape else Stream() if chosen.iterable else Noisy()
    loader = run.loader(data, batch_size=4, shuffle=not streams, num_workers=chosen.workers)
    held_out = run.loader(Noisy(20), batch_size=10)
    model = run.model(net())
    optimizer = run.optimizer(torch.optim.AdamW(model.parameters(), lr=1e-2))
    total = None if not streams else 15 * chosen.epochs
    run.scheduler(schedules.warmup_cosine(optimizer, warmup=0.1, total_steps=total), every="step")
    average = run.register("average", torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=_ema))
    ema = run.ema(model, 0.9)
    run.state.seen = run.state.get("seen", 0)
    with run:
        for epoch in run.epochs():
            for x, y in run.train(loader, model):
                with run.autocast():
                    loss = nn.functional.cross_entropy(model(x), y)
                run.state.seen += len(x)
                if run.step(loss):
                    average.update_parameters(model)
                run.log({"loss": loss, "draw": random.random(), "lr": optimizer.param_groups[0]["lr"]})
                if chosen.stop_at and run.state.seen >= chosen.stop_at:
                    raise Stopped
                time.sleep(chosen.pause)
                if chosen.evaluate_every and run.global_step % chosen.evaluate_every == 0:
                    evaluated(run, model, held_out, chosen.pause)
            evaluated(run, model, held_out, chosen.pause)
            run.log({"epoch_ended": epoch, "seen": run.state.seen})
    final = {"model": model.state_dict(), "average": average.state_dict(), "ema": ema.model.state_dict()}
    torch.save(final, Path(chosen.out) / "final.pt")
    return run


def evaluated(run, model, loader, pause):
    """Evaluate, log, and save."""
    losses = []
    with run.evaluate(model):
        for x, y in run.batches(loader):
            losses.append(nn.functional.cross_entropy(model(x), y))
            time.sleep(pause)
    val_loss = torch.stack(losses).mean()
    run.log({"val_loss": val_loss})
    run.save(metric=val_loss)


def _ema(averaged, current, count):
    torch._foreach_lerp_(averaged, current, 0.1)


if __name__ == "__main__":
    main(sys.argv[1:])
