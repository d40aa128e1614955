"""Time that the training waits for a checkpoint: our saves against `torch.save`, in turns in one process.

The model has 100 MB of weights, Adam twice that. `torch.save` writes one file and flushes nothing: a power cut loses it
and a kill while it writes leaves half of it. The row with fsync is the least cost of a safe save.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from truestep.loop.checkpoint.checkpoints import Checkpoints


def trained(megabytes: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Return a model of that many MB of weights, and its optimizer after a step."""
    torch.manual_seed(0)
    width = 1024
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(max(1, megabytes * 10**6 // (4 * width * width)))))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, width)).sum().backward()
    optimizer.step()
    return model, optimizer


class Savers:
    """Each way to save, as a function of a number that returns how long the training waits, in seconds."""

    def __init__(self, folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.folder = folder
        self.model = model
        self.optimizer = optimizer
        self.synchronous = Checkpoints(folder / "synchronous", keep_last=2)
        self.asynchronous = Checkpoints(folder / "asynchronous", keep_last=2, asynchronous=True)

    def torch_save(self, step: int, *, flush: bool = False) -> float:
        """Write one file, as scripts do."""
        begun = time.perf_counter()
        with (self.folder / f"plain-{step % 2}.pt").open("wb") as file:
            torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, file)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        return time.perf_counter() - begun

    def truestep(self, step: int, *, asynchronous: bool) -> float:
        """Write a checkpoint; an asynchronous one is finished before this returns, but only the stall is counted."""
        checkpoints = self.asynchronous if asynchronous else self.synchronous
        state = {"optimizers": {"optimizer": self.optimizer.state_dict()}}
        begun = time.perf_counter()
        checkpoints.save(step, epoch=0, models={"model": self.model.state_dict()}, state=state)
        stall = time.perf_counter() - begun
        checkpoints.wait()
        return stall

    def ways(self) -> dict[str, Callable[[int], float]]:
        """Return all savers by name."""
        return {
            "torch.save": self.torch_save,
            "torch.save and fsync": lambda step: self.torch_save(step, flush=True),
            "truestep": lambda step: self.truestep(step, asynchronous=False),
            "truestep, asynchronous": lambda step: self.truestep(step, asynchronous=True),
        }


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="weights of the model; Adam adds twice that")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--save", action="store_true", help="write bench/results/checkpoint.json")
    options = parser.parse_args()
    model, optimizer = trained(options.megabytes)
    waits: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        ways = Savers(Path(folder), model, optimizer).ways()
        for step in range(options.rounds + 1):
            for name, save in ways.items():
                waited = save(step)
                os.sync()
                if step:  # the first is a warm-up
                    waits.setdefault(name, []).append(waited)
    plain = statistics.median(waits["torch.save"])
    rows = []
    print(f"{'training waits for':<26}{'median ms':>10}{'best ms':>10}{'ratio':>8}")
    for name, values in waits.items():
        row = {"way": name, "median_ms": statistics.median(values) * 1e3, "best_ms": min(values) * 1e3}
        row["ratio"] = statistics.median(values) / plain
        rows.append({key: value if isinstance(value, str) else round(value, 3) for key, value in row.items()})
        print(f"{name:<26}{row['median_ms']:>10.0f}{row['best_ms']:>10.0f}{row['ratio']:>8.2f}")
    if options.save:
        machine = {
            "torch": torch.__version__, "python": platform.python_version(), "cores": os.cpu_count(),
            "weights_mb": options.megabytes, "rounds": options.rounds,
        }  # fmt: skip
        path = Path(__file__).parent / "results" / "checkpoint.json"
        path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
