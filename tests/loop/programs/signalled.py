"""Runs the training of training.py, and sends its process group signals where the test says.

    python signalled.py OUT WHEN SIGNALS [options of training.py]

WHEN is `step:N` (in the body that ends with step N), `window` (in the middle of a window) or `evaluation`; SIGNALS is
a list as `TERM` or `INT,INT`.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import truestep
from truestep.loop.run import run as run_module

_spec = importlib.util.spec_from_file_location("training_program", Path(__file__).parent / "training.py")
training = importlib.util.module_from_spec(_spec)
sys.modules["training_program"] = training
_spec.loader.exec_module(training)


class Run(run_module.Run):
    """A run that is sent signals from inside its own process, at an exact place."""

    when = ""
    signals = ()

    def __init__(self, *given, **settings):
        super().__init__(*given, **{"progress": False} | settings)

    def send(self):
        signals, Run.signals = Run.signals, ()
        for name in signals:
            # from another process, and to the workers, too: as Ctrl-C, systemd and Slurm do
            subprocess.run(["kill", f"-{name}", "--", f"-{os.getpgid(0)}"], check=False)

    def step(self, loss, **more):
        closed = super().step(loss, **more)
        kind, _, number = self.when.partition(":")
        if kind == "step" and closed and self.global_step == int(number):
            self.send()
        if kind == "window" and not closed and self.global_step == 5:
            self.send()
        return closed

    def evaluate(self, *models, **more):
        if self.when == "evaluation":
            self.send()
        return super().evaluate(*models, **more)


if __name__ == "__main__":
    Run.when, Run.signals = sys.argv[2], sys.argv[3].split(",")
    training.Run = truestep.Run = Run
    training.main([sys.argv[1], *sys.argv[4:]])
