"""Time of a step on two ranks of this machine, next to DistributedDataParallel by hand.

gloo on the CPU, one thread for each rank. All ways train the same model on the same batches in the same processes, in
turns of some steps; the ratio of a way is the median over rounds of its time by that of the hand-written loop in the
same round. Before that, the weights of all ways are compared after a few steps.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

RESULTS = Path(__file__).parent / "results" / "several_ranks.json"
MODELS: dict[str, Callable[[], nn.Module]] = {
    "MLP 64-256-256-10, batches of 64": lambda: nn.Sequential(
        nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
    ),
    "MLP 64-1024-1024-10, batches of 64": lambda: nn.Sequential(
        nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ),
}
Way = Callable[[nn.Module], Iterator[None]]
"""A loop that yields after each step."""
loss_of = nn.functional.cross_entropy
distributed: Any = torch.distributed


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1000 * step + distributed.get_rank())
    return torch.randn(64, 64, generator=generator), torch.randint(0, 10, (64,), generator=generator)


BATCHES: list[tuple[torch.Tensor, torch.Tensor]] = []


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def by_hand(model: nn.Module) -> Iterator[None]:
    wrapped = nn.parallel.DistributedDataParallel(model)
    optimizer = sgd(model)
    while True:
        for x, y in BATCHES:
            optimizer.zero_grad()
            loss_of(wrapped(x), y).backward()
            optimizer.step()
            yield


def truestep_run(model: nn.Module) -> Iterator[None]:
    import truestep

    run = truestep.Run(max_steps=1_000_000, device="cpu", watch=False, alerts=False, progress=False)
    run.model(model)
    run.optimizer(sgd(model))
    steps = iter(run.steps())
    while True:
        for x, y in BATCHES:
            next(steps)
            run.step(loss_of(model(x), y))
            yield


WAYS: dict[str, Way] = {"DDP by hand": by_hand, "TrueStep": truestep_run}


def measured(make: Callable[[], nn.Module], rounds: int, steps: int) -> dict[str, float]:
    """Return the ratio of each way, and the milliseconds of a step by hand."""
    loops, models = {}, {}
    for name, way in WAYS.items():
        torch.manual_seed(0)
        models[name] = make()
        loops[name] = way(models[name])
    for loop in loops.values():
        for _ in range(20):
            next(loop)
    hand = [p.detach().clone() for p in models["DDP by hand"].parameters()]
    for name in loops:
        for own, other in zip(models[name].parameters(), hand, strict=True):
            torch.testing.assert_close(own.detach(), other, msg=f"{name} trains other weights")
    times: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            distributed.barrier()
            begun = time.perf_counter()
            for _ in range(steps):
                next(loop)
            times[name].append((time.perf_counter() - begun) / steps)
    base = times["DDP by hand"]
    ratios = {
        name: statistics.median(own / other for own, other in zip(each, base, strict=True))
        for name, each in times.items()
    }
    return {"ms by hand": 1000 * statistics.median(base), **{name: ratios[name] for name in loops}}


def rank(arguments: argparse.Namespace) -> None:
    """Measure on one rank; rank 0 prints."""
    warnings.simplefilter("ignore")
    logging.disable()
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    BATCHES[:] = [batch(step) for step in range(8)]
    with contextlib.redirect_stdout(sys.stderr):
        found = {name: measured(make, arguments.rounds, arguments.steps) for name, make in MODELS.items()}
    if distributed.get_rank() == 0:
        Path(arguments.rank).write_text(json.dumps(found), encoding="utf-8")
    distributed.barrier()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        rank(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        launcher = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "--master-port",
            "0",
            __file__,
        ]
        options = ["--rounds", str(arguments.rounds), "--steps", str(arguments.steps), "--rank", str(result)]
        subprocess.run([*launcher, *options], check=True, capture_output=True)
        found = json.loads(result.read_text(encoding="utf-8"))
    for name, ratios in found.items():
        print(f"{name}: {ratios.pop('ms by hand'):.2f} ms by hand")
        for way, ratio in ratios.items():
            print(f"  {way:12} {ratio:.3f}")
    if arguments.save:
        about = {"torch": torch.__version__, "machine": platform.machine(), "cores": 2, "ratios": found}
        RESULTS.write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
