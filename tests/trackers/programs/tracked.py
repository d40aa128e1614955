"""A training with a tracker, that can kill itself: python tracked.py OUT TRACKER [kill=STEP]."""

import os
import signal
import sys

import torch
from torch import nn

from truestep import Run


class Cut(Exception):
    """The program was cut off."""


def train(out, trackers, epochs=3, kill=None, cut=None):
    """Train, and at step `kill` be killed, or at step `cut` raise, after the logged values reached the tracker."""
    run = Run(
        out=out,
        resume="auto",
        seed=1,
        device="cpu",
        max_epochs=epochs,
        clip_norm=1.0,
        save_every_n_steps=2,
        log_every_n_steps=1,
        trackers=trackers,
        progress=False,
        watch=False,
    )
    data = torch.utils.data.TensorDataset(*torch.randn(2, 16, 3, generator=torch.Generator().manual_seed(0)))
    loader = run.loader(data, batch_size=4, shuffle=True)
    model = run.model(nn.Linear(3, 3))
    run.optimizer(torch.optim.Adam(model.parameters(), lr=0.1))
    with run:
        for epoch in run.epochs():
            for x, y in run.train(loader, model):
                loss = nn.functional.mse_loss(model(x), y)
                run.step(loss)
                run.log({"loss": loss, "note": f"epoch {epoch}"})
                if run.global_step == kill:
                    os.kill(os.getpid(), signal.SIGKILL)
                if run.global_step == cut:
                    raise Cut
            run.log({"val_loss": loss})
            run.save()


if __name__ == "__main__":
    more = dict(word.split("=") for word in sys.argv[3:])
    train(sys.argv[1], tuple(filter(None, [sys.argv[2]])), kill=int(more.get("kill", 0)))
